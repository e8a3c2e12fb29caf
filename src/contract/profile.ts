/** A bank's own additions and restrictions to the standard, as data: what the file of `environments.NAME.contract.profile` contains. */

import { z } from 'zod';
import type { Definitions } from './compile-schemas.ts';
import { type Deviation, rules } from './deviation.ts';
import { sharedDefinitions } from './field-schemas.ts';
import { requestDefinitions } from './request-schemas.ts';
import type { Schema } from './standard-versions.ts';

const schemas: Definitions = { ...requestDefinitions, ...sharedDefinitions };
const bodies = Object.keys(schemas);

/** A name that does not exist, and the names that do. */
interface Unknown {
  readonly name: string;
  readonly known: readonly string[];
}

/** No key is a pattern: an operator could write one that takes very long. */
const field = z.strictObject({
  body: z
    .enum(bodies)
    .describe('The body that has the field, or the object in a body: account, amount or address.'),
  field: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'expected the name of one field')
    .describe('Its name.'),
  presence: z
    .enum(['optional', 'required', 'forbidden', 'ignored'])
    .optional()
    .describe(
      'optional: the bank uses it, also where the version of the standard does not have it. required: the bank refuses a body without it. forbidden: the bank refuses a body with it. ignored: the bank takes no notice of it.',
    ),
  effect: z
    .enum(['ignored', 'executed-at-once', 'executed-differently'])
    .optional()
    .describe('What the bank does with a body that has an ignored field; the last two are harmful.'),
  maxLength: z.int().min(1).max(10_000).optional().describe('The longest text that the bank accepts.'),
  oneOf: z
    .array(z.string().max(200))
    .min(1)
    .max(500)
    .optional()
    .describe('The only texts that the bank accepts.'),
  characters: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('The only characters that the bank accepts, one after the other.'),
});

const fieldOfSchema = field.superRefine(({ body, field: name, presence, ...limits }, context) => {
  const properties: Schema = Object(Object(schemas[body]).properties);
  const schema = Object.hasOwn(properties, name) ? Object(properties[name]) : undefined;
  const refuse = (path: string, message: string, unknown?: Unknown) =>
    context.addIssue({ code: 'custom', path: [path], message, params: { unknown } });
  if (!schema && !presence) {
    const why = `${body} has no field ${name} in the standard; correct it, or add presence for a field of the bank's own`;
    refuse('field', why, { name, known: Object.keys(properties) });
  }
  const isLimited = [limits.maxLength, limits.oneOf, limits.characters].some((limit) => limit !== undefined);
  if (schema && isLimited && !mayBeText(schema))
    refuse('field', `${name} is no text; remove maxLength, oneOf and characters`);
  if (isLimited && (presence === 'forbidden' || presence === 'ignored'))
    refuse('presence', `${presence} allows no maxLength, oneOf and characters; remove them`);
  if (limits.effect && presence !== 'ignored')
    refuse('effect', 'only a field with presence: ignored has an effect; remove it');
  if (schema && !presence && !isLimited)
    refuse('field', 'nothing is changed; add presence, maxLength, oneOf or characters');
});

function mayBeText(schema: Schema): boolean {
  if ('absent' in schema) return true;
  const { type } = 'byVersion' in schema ? Object(Object(schema.byVersion)['1.3.11']) : schema;
  return type === 'string';
}

const level = z.strictObject({
  path: z
    .string()
    .max(200)
    .regex(
      /^(headers|body|error|parts|path|xml|status)(\/[^/\s]+)*$/,
      'expected a path as in the report, such as headers/PSU-IP-Address or body/creditorName',
    )
    .describe('As in the report, such as headers/PSU-IP-Address.'),
  rule: z.enum(rules).describe('As in the report, such as required.'),
  level: z
    .enum(['harmful', 'notable', 'usual'])
    .describe('harmful: the bank refuses it. notable, usual: the bank accepts it; it is only reported.'),
});

export const profileSchema = z.strictObject({
  products: z
    .array(z.string().regex(/^[A-Za-z0-9._~-]{1,256}$/, 'expected a payment product, as in paths'))
    .max(100)
    .prefault([])
    .describe('Payment products of the bank that the standard does not list.'),
  fields: z
    .array(fieldOfSchema)
    .max(500)
    .prefault([])
    .describe('Fields that the bank treats in another way.'),
  levels: z.array(level).max(500).prefault([]).describe('Deviations that this bank tolerates, or does not.'),
});

export type Profile = z.output<typeof profileSchema>;

/** A mistake in a profile. */
export interface ProfileError {
  /** Where it is: keys and indices. */
  readonly path: readonly (string | number)[];
  /** What is wrong, and what to write instead. */
  readonly why: string;
  /** For a suggestion. */
  readonly unknown?: Unknown | undefined;
}

export type ParsedProfile = { readonly profile: Profile } | { readonly errors: readonly ProfileError[] };

/** Checks the content of a profile's file, after YAML or JSON was parsed. */
export function parseProfile(data: unknown): ParsedProfile {
  const result = profileSchema.safeParse(data ?? {}, { reportInput: true });
  if (result.success) return { profile: result.data };
  return { errors: result.error.issues.flatMap(errorsOf) };
}

function errorsOf(issue: z.core.$ZodIssue): readonly ProfileError[] {
  const path = issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key));
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = Object.keys(shapeAt(path));
      return issue.keys.map((name) => ({
        path: [...path, name],
        why: `unknown key; allowed: ${known.join(', ')}`,
        unknown: { name, known },
      }));
    }
    case 'invalid_value': {
      const known = issue.values.map(String);
      const unknown = typeof issue.input === 'string' ? { name: issue.input, known } : undefined;
      const isRule = path.at(-1) === 'rule';
      const why = isRule ? 'no such rule; copy it from the report' : `expected one of ${known.join(', ')}`;
      return [{ path, why, unknown }];
    }
    case 'invalid_type': {
      const expected = typeNames[issue.expected] ?? issue.expected;
      return [{ path, why: issue.input === undefined ? `required: ${expected}` : `expected ${expected}` }];
    }
    case 'too_small':
      return [{ path, why: `expected at least ${issue.minimum}${unitOf(issue.origin)}` }];
    case 'too_big':
      return [{ path, why: `expected at most ${issue.maximum}${unitOf(issue.origin)}` }];
    case 'custom':
      return [{ path, why: issue.message, unknown: issue.params?.unknown }];
    default:
      return [{ path, why: issue.message }];
  }
}

const shapeAt = ([list]: readonly (string | number)[]): object => {
  if (list === 'fields') return field.shape;
  return list === 'levels' ? level.shape : profileSchema.shape;
};

const typeNames: Readonly<Record<string, string>> = {
  string: 'a text; write numbers and dates in quotes',
  int: 'an integer',
  number: 'an integer',
  array: 'a list: a line that begins with "- " for each entry',
  object: 'a mapping: keys with values',
};

const unitOf = (origin: string) => ({ array: ' entries', string: ' characters' })[origin] ?? '';

/** The definitions with the fields of a profile. */
export function applyProfile(definitions: Definitions, { fields }: Profile): Definitions {
  const changed: Record<string, Schema> = { ...definitions };
  for (const change of fields) changed[change.body] = withField(changed[change.body] ?? {}, change);
  return changed;
}

/** The deviations with the levels that a profile gives them. */
export function withLevels(
  profile: Profile | undefined,
  deviations: readonly Deviation[],
): readonly Deviation[] {
  if (!profile || profile.levels.length === 0 || deviations.length === 0) return deviations;
  return deviations.map((deviation) => {
    const own = profile.levels.find(({ path, rule }) => path === deviation.path && rule === deviation.rule);
    if (!own || own.level === deviation.level) return deviation;
    return { ...deviation, level: own.level, effect: own.level === 'harmful' ? 'refused' : 'none' };
  });
}

type FieldChange = Profile['fields'][number];

function withField(body: Schema, change: FieldChange): Schema {
  const properties: Schema = { ...Object(body.properties) };
  const required: readonly string[] = Array.isArray(body.required) ? body.required : [];
  const others = required.filter((name) => name !== change.field);
  return {
    ...body,
    properties: {
      ...properties,
      [change.field]: changedField(Object(properties[change.field] ?? {}), change),
    },
    required:
      change.presence === 'required' ? [...others, change.field] : change.presence ? others : required,
  };
}

function changedField(schema: Schema, change: FieldChange): Schema {
  if (change.presence === 'forbidden') return absentAs('forbidden', 'harmful', 'refused');
  if (change.presence === 'ignored') {
    const effect = change.effect ?? 'ignored';
    return absentAs('ignored', effect === 'ignored' ? 'notable' : 'harmful', effect);
  }
  const { absent, ...known } = schema;
  const isText =
    change.maxLength !== undefined || change.oneOf !== undefined || change.characters !== undefined;
  return {
    ...(absent === undefined ? known : {}),
    ...(isText && !('type' in known) && !('$ref' in known) ? { type: 'string' } : {}),
    ...(change.maxLength === undefined ? {} : { maxLength: change.maxLength }),
    ...(change.oneOf === undefined ? {} : { enum: change.oneOf }),
    ...(change.characters === undefined ? {} : { characters: change.characters }),
  };
}

const absentAs = (rule: string, level: string, effect: string): Schema => ({
  absent: { rule, level, effect },
});
