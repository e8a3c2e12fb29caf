/** Reads the file of a simulated bank's profile, and names the line of each mistake. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { formatPath, issuesInMapping, pathOf } from '../config/config-errors.ts';
import { closestName } from '../config/did-you-mean.ts';
import type { SettingPath } from '../config/object-path.ts';
import { readYaml } from '../config/yaml-text.ts';
import { type BankProfileSettings, profileSchema } from '../simulated-bank/profile.ts';
import { CommandError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';

/** @throws CommandError that lists all mistakes, one line each: `FILE:LINE path: what to change` */
export function readBankProfile(file: string): BankProfileSettings {
  const yaml = readYaml(textOf(file));
  const parsed = profileSchema.safeParse(yaml.tree, { reportInput: true });
  if (yaml.errors.length === 0 && parsed.success) return parsed.data;
  const mistakes: readonly Mistake[] =
    parsed.success || !yaml.isReadable ? [] : parsed.error.issues.flatMap(mistakesOf);
  const lines = [...yaml.errors, ...mistakes.map((one) => ({ ...one, line: yaml.lineOf(one.path) }))]
    .toSorted((one, other) => one.line - other.line)
    .map(
      ({ line, path, message }) =>
        `${file}:${line} ${[formatPath(path), message].filter(Boolean).join(': ')}`,
    );
  throw new CommandError(exitCodes.config, lines.join('\n'));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const { message } = cause instanceof Error ? cause : new Error(String(cause));
    throw new CommandError(exitCodes.config, `The profile cannot be read: ${message}`, { cause });
  }
}

interface Mistake {
  readonly path: SettingPath;
  readonly message: string;
}

function mistakesOf(issue: z.core.$ZodIssue): readonly Mistake[] {
  const path = pathOf(issue);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = namesAt(path);
      return issue.keys.map((name) => {
        const similar = closestName(name, known);
        const hint = similar === undefined ? '' : ` (did you mean ${similar}?)`;
        return { path: [...path, name], message: `unknown key; allowed: ${known.join(', ')}${hint}` };
      });
    }
    case 'invalid_value':
      return [{ path, message: `expected one of ${issue.values.map(String).join(', ')}` }];
    case 'invalid_type': {
      const required = issue.input === undefined ? 'required; ' : '';
      const quotes = typeof issue.input === 'number' ? ' in quotes' : '';
      return [
        { path, message: `${required}expected ${typeNames[issue.expected] ?? issue.expected}${quotes}` },
      ];
    }
    case 'invalid_union': {
      const inner = issuesInMapping(issue);
      if (inner.length > 0) return inner.flatMap(mistakesOf);
      const message =
        'expected a text in quotes, or a mapping with default and names of operations: { default: v1.1, startAuthorisation: v1 }';
      return [{ path, message }];
    }
    default:
      return [{ path, message: issue.message }];
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a text',
  int: 'an integer',
  number: 'an integer',
  array: 'a list',
  object: 'a mapping (keys with values)',
  record: 'a mapping (keys with values)',
};

/** The keys that a mapping of the profile may have. */
function namesAt(path: SettingPath): readonly string[] {
  type Node = z.core.JSONSchema.BaseSchema;
  const isNode = (node: unknown): node is Node => typeof node === 'object' && node !== null;
  const below = (node: Node | undefined, key: string | number): Node | undefined =>
    [typeof key === 'number' ? node?.items : node?.properties?.[key]].find(isNode);
  const schema: Node = z.toJSONSchema(profileSchema, { io: 'input' });
  const node = path.reduce<Node | undefined>(below, schema);
  return [node, ...(node?.anyOf ?? [])].filter(isNode).flatMap((form) => {
    const names = isNode(form.propertyNames) ? form.propertyNames.enum : undefined; // of a mapping by operation
    return names?.map(String) ?? Object.keys(form.properties ?? {});
  });
}
