/** Reads the example of a bank's interface, as in config/banks, for `penstock init`. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, parseDocument, visit, type YAMLMap } from 'yaml';
import { CommandError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';

const folder = join(import.meta.dirname, '../../config/banks');

/** The parts of a configuration that differ between banks, with their comments. */
export interface BankExample {
  readonly environment: YAMLMap;
  readonly standard: YAMLMap | undefined;
  /** What TPP systems must send, in the words of the file. */
  readonly notes: readonly string[];
  /** The address in the example, whose host is a placeholder. */
  readonly baseUrl: string;
}

/** The names of the examples. */
export const bankNames = (): readonly string[] =>
  readdirSync(folder)
    .map((file) => file.replace(/\.yaml$/, ''))
    .toSorted();

/**
 * @param bank the name of an example, or the path of another file of this form
 * @throws CommandError if there is no such example, or the file has another form
 */
export function readBankExample(bank: string): BankExample {
  const names = bankNames();
  const file = names.includes(bank) ? join(folder, `${bank}.yaml`) : bank;
  const document = parseDocument(textOf(file, names), { prettyErrors: false });
  const fail = (what: string) => new CommandError(exitCodes.usage, `--bank-like: the file ${what}`);
  if (document.errors.length > 0) throw fail('is not valid YAML');
  const aliases: string[] = [];
  visit(document, { Alias: (_key, { source }) => void aliases.push(source) });
  if (aliases.length > 0) throw fail('has an alias (*name); write the values out');
  const environments = document.get('environments');
  const [environment] = isMap(environments)
    ? environments.items.map(({ value }) => value).filter((value) => isMap(value))
    : [];
  if (!environment)
    throw fail(
      `has no environment; examples/banks has profiles for penstock bank, config/banks the files for penstock init`,
    );
  const standard = document.get('standard');
  return {
    environment,
    standard: isMap(standard) ? standard : undefined,
    notes: notesIn(document.commentBefore ?? ''),
    baseUrl: String(environment.get('baseUrl') ?? ''),
  };
}

function textOf(file: string, names: readonly string[]): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const message = `--bank-like: no such example, and no such file; the examples are ${names.join(', ')}`;
    throw new CommandError(exitCodes.usage, message, { cause });
  }
}

/** The comment may be long: only what TPP systems send, and how well the facts are known. */
const notesIn = (comment: string): readonly string[] => {
  const lines = comment.split('\n').map((line) => line.trim());
  const found = lines.filter((line) => /^(Your TPP systems send:|From public sources)/.test(line));
  return found.length === 0 ? [] : ['', ...found];
};
