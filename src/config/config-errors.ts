/** Errors in a configuration: each message says what to write instead. None quotes a value that may be a secret. */

import type { z } from 'zod';
import { closestName, nameOfSameWords } from './did-you-mean.ts';
import { variableOf } from './environment-variables.ts';
import { isMapping, type SettingPath } from './object-path.ts';
import { anyName, namesAt, schemaAt, settings } from './settings.ts';

export interface ConfigError {
  /** The setting to change. */
  readonly path: SettingPath;
  /** What is wrong, and what to write instead. */
  readonly message: string;
  /** Other settings involved; an error in one of them makes this one meaningless. */
  readonly related?: readonly SettingPath[];
}

/** A valid configuration that cannot be used until somebody changes it: a restart does not help. */
export class UnusableConfigError extends Error {}

/** A path as users write it: `clients[0].name`. */
export const formatPath = (path: SettingPath): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '');

/** The errors in one issue of the schema: one for each unknown key or mistake in a mapping, otherwise one. */
export function configErrorsOf(issue: z.core.$ZodIssue): readonly ConfigError[] {
  const inner = issuesInMapping(issue);
  if (inner.length > 0) return inner.flatMap(configErrorsOf);
  const path = pathOf(issue);
  if (issue.code !== 'unrecognized_keys')
    return [{ path, message: messageOf(issue) + variableHint(issue, path) }];
  const advice = issue.message && `; ${issue.message}`;
  return issue.keys.map((name) => ({
    path: [...path, name],
    message: unknownKeyMessage(name, path) + advice,
  }));
}

export const pathOf = ({ path }: z.core.$ZodIssue): SettingPath =>
  path.map((key) => (typeof key === 'symbol' ? String(key) : key));

/**
 * What is wrong inside of a mapping that may also have another form, such as a text: without this, the issue would only list the forms.
 * Of several forms of a mapping, only the keys that none of them has; nothing for all other issues.
 */
export function issuesInMapping(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union' || !isMapping(issue.input)) return [];
  const forms = issue.errors.filter((issues) => !issues.some(isOtherForm));
  const [first = [], ...others] = forms;
  const isUnknown = (key: string) =>
    others.every((issues) =>
      issues.some((one) => one.code === 'unrecognized_keys' && one.keys.includes(key)),
    );
  const inner =
    others.length === 0
      ? first
      : first.flatMap((one) =>
          one.code === 'unrecognized_keys' ? [{ ...one, keys: one.keys.filter(isUnknown) }] : [],
        );
  return inner
    .filter((one) => one.code !== 'unrecognized_keys' || one.keys.length > 0)
    .map((one) => ({ ...one, path: [...issue.path, ...one.path] }));
}

/** Of the whole value: a text was expected, or one of some words. */
const isOtherForm = ({ code, path }: z.core.$ZodIssue) =>
  path.length === 0 && (code === 'invalid_type' || code === 'invalid_value');

/** The message for an issue of a setting whose schema has no message of its own. */
export function schemaErrorMessage(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type')
    return `expected ${typeNames[issue.expected] ?? issue.expected}${allowedKeys(issue)}`;
  if (issue.code === 'invalid_value') return `expected ${formatList(issue.values.map(String))}`;
  if (issue.code === 'too_small')
    return `expected at least ${issue.minimum}${countUnit(issue.origin, issue.minimum)}`;
  if (issue.code === 'too_big')
    return `expected at most ${issue.maximum}${countUnit(issue.origin, issue.maximum)}`;
  if (issue.code === 'unrecognized_keys') return ''; // Schemas may add advice.
  return undefined;
}

const messageOf = (issue: z.core.$ZodIssue) =>
  issue.code === 'invalid_type' && issue.input === undefined ? `required; ${issue.message}` : issue.message;

/** For values that other programs replace: `${BANK_URL}`. */
function variableHint({ input }: z.core.$ZodIssue, path: SettingPath): string {
  if (typeof input !== 'string' || !input.includes('${')) return '';
  const variable = variableOf(path);
  return `; variables are not replaced: write the value${variable ? `, or set ${variable}` : ''}`;
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'an integer', // settings with fractions are written with a unit
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list: [a, b], or a line that begins with "- " for each entry',
  object: 'a mapping (keys with values)',
};

/** The keys of a mapping that has only these. */
function allowedKeys({ expected, path = [] }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string {
  const at = path.map((key) => (typeof key === 'symbol' ? String(key) : key));
  const { properties, additionalProperties } = schemaAt(at) ?? {};
  if (expected !== 'object' || !properties || additionalProperties) return '';
  return `; allowed: ${Object.keys(properties).join(', ')}`;
}

const countUnit = (origin: string, count: unknown) =>
  origin === 'array' ? (Number(count) === 1 ? ' entry' : ' entries') : '';

function unknownKeyMessage(name: string, parent: SettingPath): string {
  const allowed = namesAt(parent);
  const similar =
    closestName(name, allowed) ??
    sameNameBelow(name, parent) ??
    nameOfSameWords(name, allowed) ??
    sameNameElsewhere(name);
  const hint = similar ? ` (did you mean ${similar}?)` : '';
  return `unknown key ${name}; allowed: ${allowed.join(', ')}${hint}`;
}

/** A setting with this name in a mapping inside of `parent`, such as `tls.certFile` of an environment. */
function sameNameBelow(name: string, parent: SettingPath): string | undefined {
  const setting = settings.find(
    ({ path }) =>
      path.at(-1) === name &&
      path.length > parent.length + 1 &&
      parent.every((key, index) => key === path[index] || path[index] === anyName),
  );
  const below = setting?.path.slice(parent.length).map((key) => (key === anyName ? 'NAME' : key));
  return below && formatPath([...parent, ...below]);
}

/** The setting with this name in another section, if there is only one. */
function sameNameElsewhere(name: string): string | undefined {
  const found = settings.filter(({ path }) => path.at(-1) === name && path.length > 1);
  const sections = found.filter(({ path }) => !path.includes(anyName));
  const [setting, ...others] = sections.length > 0 ? sections : found;
  return setting && others.length === 0 ? setting.path.join('.').replace(anyName, 'NAME') : undefined;
}

const formatList = (names: readonly string[]) =>
  names.length > 1 ? `${names.slice(0, -1).join(', ')} or ${names.at(-1)}` : names.join('');
