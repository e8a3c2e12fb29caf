/** What is wrong with a configuration, said in a way that can be acted upon. No value is ever quoted: it may be a secret. */

import type { z } from 'zod';
import { closestName } from './did-you-mean.ts';
import type { SettingPath } from './object-path.ts';
import { namesAt, settings } from './settings.ts';

/** One thing that is wrong, and at which setting. */
export interface ConfigError {
  readonly path: SettingPath;
  /** What is wrong, and what to write instead. */
  readonly message: string;
  /** Other settings that take part in it. */
  readonly against?: readonly SettingPath[];
}

/** A path as people write it: `clients[0].name`. */
export const formatPath = (path: SettingPath): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '');

/** The faults in one issue of the schema: one for each unknown name, else one. */
export function configErrorsOf(issue: z.core.$ZodIssue): readonly ConfigError[] {
  const path = issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key));
  if (issue.code !== 'unrecognized_keys') return [{ path, message: messageOf(issue) }];
  return issue.keys.map((name) => ({ path: [...path, name], message: unknownSettingMessage(name, path) }));
}

/** Words an issue of the schema, unless the setting has words of its own. */
export function schemaErrorMessage(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return `expected ${typeNames[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `expected ${listText(issue.values.map(String))}`;
  if (issue.code === 'too_small') return `expected at least ${issue.minimum}${entries(issue.origin)}`;
  if (issue.code === 'too_big') return `expected at most ${issue.maximum}${entries(issue.origin)}`;
  return undefined;
}

const messageOf = (issue: z.core.$ZodIssue) =>
  issue.code === 'invalid_type' && issue.input === undefined ? `is missing; ${issue.message}` : issue.message;

const typeNames: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a whole number', // settings with fractions are written with a unit
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping (names with values)',
};

const entries = (origin: string) => (origin === 'array' ? ' entries' : '');

function unknownSettingMessage(name: string, parent: SettingPath): string {
  const meant = closestName(name, namesAt(parent)) ?? elsewhere(name);
  return meant ? `there is no such setting; did you mean ${meant}?` : 'there is no such setting; remove it';
}

/** A setting that has this name, but in another section. */
function elsewhere(name: string): string | undefined {
  const setting = settings.find(({ path }) => path.at(-1) === name);
  return setting && setting.path.length > 1 ? setting.path.join('.').replace('*', 'NAME') : undefined;
}

const listText = (names: readonly string[]) =>
  names.length > 1 ? `${names.slice(0, -1).join(', ')} or ${names.at(-1)}` : names.join('');
