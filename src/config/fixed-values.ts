/**
 * The header fields and query parameters that the gateway adds to every request to an environment: which are allowed, and their
 * values, which are texts, files or environment variables.
 */

import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { type HeaderFields, isHopByHop, isKeptFromBank } from '../pis/headers.ts';
import type { QueryParameter } from '../pis/query.ts';
import { wordsOf } from './did-you-mean.ts';
import type { SettingPath } from './object-path.ts';
import { file } from './values.ts';

/** What the gateway adds to every request to one environment. The values are secrets: never log them. */
export interface FixedValues {
  readonly headers: HeaderFields;
  readonly query: readonly QueryParameter[];
}

type FixedValue = z.output<typeof fixedValue>;
type Kind = keyof FixedValues;

/** The part of an environment that names its fixed values. */
export interface FixedValueSettings {
  readonly name: string;
  readonly headers: Readonly<Record<string, FixedValue>>;
  readonly query: Readonly<Record<string, FixedValue>>;
}

const maxEntries = 32;
const maxNameLength = 128;
const maxValueBytes = 8 * 1024;

const valueExpected = 'expected a text, { file: PATH } or { env: NAME }';

/** No message quotes the value: it may be a secret. */
const fixedValue = z.union(
  [z.string(), z.strictObject({ file: z.string() }), z.strictObject({ env: z.string() })],
  {
    error: ({ input }) =>
      typeof input === 'number' || typeof input === 'boolean'
        ? `${valueExpected}; without quotes, this is a ${typeof input}: write it in quotes`
        : valueExpected,
  },
);

const fixedValues = (kind: Kind, example: string) =>
  z
    .record(z.string(), fixedValue, { error: `expected a mapping, such as { ${example} }` })
    .superRefine((entries, context) => refuseEntries(kind, entries, context))
    .prefault({});

export const fixedHeaders = () => fixedValues('headers', 'web-api-key: { file: PATH }');
export const fixedQuery = () => fixedValues('query', 'bic: HABAEE2X');

function refuseEntries(
  kind: Kind,
  entries: Readonly<Record<string, FixedValue>>,
  context: z.RefinementCtx,
): void {
  const names = Object.keys(entries);
  const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (names.length > maxEntries) refuse([], `expected at most ${maxEntries} entries`);
  for (const [index, name] of names.entries()) {
    const same = names.slice(0, index).find((other) => other.toLowerCase() === name.toLowerCase());
    const problem = kind === 'headers' ? fieldNameProblem(name, 'set') : parameterNameProblem(name);
    const valueProblem = entryProblem(kind, entries[name] ?? '');
    if (problem !== undefined) refuse([name], problem);
    else if (same !== undefined) refuse([name], `same name as ${same}; remove one of them`);
    else if (valueProblem !== undefined) refuse([name], valueProblem);
  }
}

/** The error names the entry, not its `file` or `env`: the validation removes what has an error, and an entry without them has another one. */
function entryProblem(kind: Kind, value: FixedValue): string | undefined {
  if (typeof value === 'string') {
    const problem = textProblem(kind, value);
    return problem && `the text ${problem}`;
  }
  if ('file' in value) return file().safeParse(value.file).error?.issues[0]?.message;
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(value.env)) return 'expected the name of an environment variable';
  return value.env.startsWith('PENSTOCK_')
    ? 'variables that begin with PENSTOCK_ are settings; choose another name'
    : undefined;
}

function fieldNameProblem(name: string, use: 'set' | 'kept for polls'): string | undefined {
  if (!/^[!#$%&'*+.^`|~0-9A-Za-z-]+$/.test(name) || name.length > maxNameLength)
    return `expected the name of a header field: at most ${maxNameLength} letters, digits and hyphens`;
  return isSettable(name.toLowerCase())
    ? undefined
    : `this field cannot be ${use}: the gateway or a proxy sets or removes it; remove the entry`;
}

/** `X-API-Key` is for the gateway only if a TPP sends it. */
const isSettable = (name: string) =>
  name === 'x-api-key' ||
  !(isHopByHop(name) || isKeptFromBank(name) || /^(content|penstock)-/.test(name) || derivedFields.has(name));

const callerNamesExpected = 'expected a list of header names, such as [X-BIC]';

/** Names of header fields of the TPP, in lower case. */
export const callerFieldNames = () =>
  z
    .array(z.string({ error: callerNamesExpected }), { error: callerNamesExpected })
    .superRefine((names, context) => {
      if (names.length > maxEntries)
        context.addIssue({ code: 'custom', message: `expected at most ${maxEntries} names` });
      for (const [index, name] of names.entries()) {
        const message = callerFieldProblem(name, names.slice(0, index));
        if (message !== undefined) context.addIssue({ code: 'custom', path: [index], message });
      }
    })
    .transform((names) => names.map((name) => name.toLowerCase()))
    .prefault([]);

function callerFieldProblem(name: string, before: readonly string[]): string | undefined {
  const problem = fieldNameProblem(name, 'kept for polls');
  const lowerCaseName = name.toLowerCase();
  const same = before.find((other) => other.toLowerCase() === lowerCaseName);
  if (problem === undefined && same !== undefined) return `same name as ${same}; remove one of them`;
  return lowerCaseName === 'x-api-key'
    ? 'this field identifies the client at the gateway, and is not sent to the bank; remove the name, or set the value that the bank expects in headers'
    : problem;
}

/** The gateway derives them from the request of the TPP, and from the content codings that it can decode. */
const derivedFields: ReadonlySet<string> = new Set([
  'accept-encoding',
  'digest',
  'signature',
  'x-request-id',
]);

const parameterNameProblem = (name: string) =>
  name === '' || name.length > maxNameLength || !isPlainText(name)
    ? `expected the name of a query parameter: 1 to ${maxNameLength} characters, without control characters`
    : undefined;

/** Continues a sentence such as "the file ...". */
function textProblem(kind: Kind, value: string): string | undefined {
  if (value === '') return 'is empty; write the value';
  if (Buffer.byteLength(value) > maxValueBytes) return 'is longer than 8 KiB';
  if (/[\r\n]/.test(value)) return 'contains a line break; write the value as one line';
  if (!isPlainText(value)) return 'contains a control character; remove it';
  if (kind === 'query') return undefined;
  if (!/^[\x20-\x7e]*$/.test(value)) return 'contains a character that is not ASCII; remove it';
  return value.trim() === value ? undefined : 'begins or ends with a space; remove it';
}

const isPlainText = (text: string) => text.isWellFormed() && !/\p{Cc}/u.test(text);

/** A value that cannot be used. */
export interface FixedValueError {
  readonly path: SettingPath;
  readonly message: string;
  readonly cause?: unknown;
  /** Set if the file cannot be read. */
  readonly unreadable?: string;
}

/**
 * Reads the files and variables that the fixed values of an environment name. One line break at the end of a value is removed.
 *
 * @param variables the values of environment variables by name
 */
export function readFixedValues(
  { name: environment, headers, query }: FixedValueSettings,
  variables: Readonly<Record<string, string | undefined>>,
  read: ReadFile,
): { readonly values: FixedValues; readonly errors: readonly FixedValueError[] } {
  const errors: FixedValueError[] = [];

  function readAll(kind: Kind, entries: Readonly<Record<string, FixedValue>>): readonly QueryParameter[] {
    return Object.entries(entries).flatMap(([name, value]) => {
      const path = ['environments', environment, kind, name];
      if (typeof value === 'string') return [[name, value] as const];
      const text = 'file' in value ? readText(path, value.file) : readVariable(path, value.env);
      if (text === undefined) return [];
      const line = text.replace(/\r?\n$/, '');
      const problem = textProblem(kind, line);
      if (problem === undefined) return [[name, line] as const];
      const source = 'file' in value ? `the file ${value.file}` : `the environment variable ${value.env}`;
      errors.push({ path: [...path, 'file' in value ? 'file' : 'env'], message: `${source} ${problem}` });
      return [];
    });
  }

  function readText(entry: SettingPath, name: string): string | undefined {
    const path = [...entry, 'file'];
    try {
      const content = read(name);
      if (isUtf8(content)) return content.toString();
      errors.push({ path, message: `the file ${name} is not a text in UTF-8; save it in this encoding` });
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      errors.push({ path, message, cause, unreadable: name });
    }
    return undefined;
  }

  function readVariable(entry: SettingPath, name: string): string | undefined {
    const value = variables[name];
    if (value === undefined)
      errors.push({
        path: [...entry, 'env'],
        message: `the environment variable ${name} is not set; set it for the process of the gateway`,
      });
    return value;
  }

  const values = { headers: readAll('headers', headers), query: readAll('query', query) };
  return { values, errors };
}

/** The names of the environment variables that fixed values come from. */
export const fixedValueVariables = ({ headers, query }: Pick<FixedValueSettings, Kind>): readonly string[] =>
  [...Object.values(headers), ...Object.values(query)].flatMap((value) =>
    typeof value === 'object' && 'env' in value ? [value.env] : [],
  );

/** Whether a setting is the text of a fixed value whose name says that it is a secret. */
export const isSecretText = ([section, , kind, name, ...rest]: SettingPath): boolean =>
  section === 'environments' &&
  (kind === 'headers' || kind === 'query') &&
  name !== undefined &&
  rest.length === 0 &&
  saysSecret(String(name));

/** Whether the name of a field or parameter says that its value is a secret. Words, so that `Bank-Authority` and `monkey` do not. */
export const saysSecret = (name: string): boolean => wordsOf(name).some((word) => secretWord.test(word));

const secretWord =
  /^(?:(?:access|api|app|auth|client|private|subscription)?keys?|[a-z]*(?:secret|token|password)s?|o?auth|authentication|authorization|credentials?|passwd|pin)\d*$/;
