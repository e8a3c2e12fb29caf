/** The example exchanges of `test/examples`, as bytes and fields. */

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Field } from './fields.ts';

/** One request and the answers that banks give to it. */
export interface Example {
  /** The file's name without its ending, such as `get-payment`. */
  readonly name: string;
  readonly operation: string;
  readonly method: string;
  /** Behind `/v1`. */
  readonly path: string;
  readonly headers: readonly Field[];
  readonly body: string | undefined;
  readonly answers: readonly ExampleAnswer[];
}

export interface ExampleAnswer {
  readonly name: string;
  readonly standard: string;
  readonly status: number;
  readonly headers: readonly Field[];
  readonly body: string | undefined;
}

interface File {
  readonly operation: string;
  readonly request: WrittenMessage & { readonly method: string; readonly path: string };
  readonly answers: readonly (WrittenMessage & {
    readonly case: string;
    readonly standard: string;
    readonly status: number;
  })[];
}

interface WrittenMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const folder = join(import.meta.dirname, '../examples');

/** All of them, by name. */
export const examples: readonly Example[] = globSync('*.json', { cwd: folder }).toSorted().map(read);

/** The example of this name. */
export function exampleOf(name: string): Example {
  const found = examples.find((example) => example.name === name);
  if (!found) throw new Error(`there is no test/examples/${name}.json`);
  return found;
}

function read(file: string): Example {
  const { operation, request, answers }: File = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  return {
    name: file.replace('.json', ''),
    operation,
    method: request.method,
    path: request.path,
    ...messageOf(request),
    answers: answers.map((answer) => ({
      name: `${answer.status} ${answer.case}`,
      standard: answer.standard,
      status: answer.status,
      ...messageOf(answer),
    })),
  };
}

function messageOf({ headers, body }: WrittenMessage) {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  return { headers: Object.entries(headers), body: text };
}
