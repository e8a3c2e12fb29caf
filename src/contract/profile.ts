/** A bank's own additions and restrictions to the standard, as data: what the file of `environments.NAME.contract.profile` contains. */

import { z } from 'zod';
import type { Definitions } from './compile-schemas.ts';
import { type Deviation, rules } from './deviation.ts';
import { sharedDefinitions } from './field-schemas.ts';
import { requestDefinitions } from './request-schemas.ts';
import type { Schema } from './standard-versions.ts';

const schemas: Definitions = { ...requestDefinitions, ...sharedDefinitions };
const bodies = Object.keys(schemas);

/** Patterns are not offered: with them, an operator could write one that takes very long. */
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
  const refuse = (message: string) => context.addIssue({ code: 'custom', path: ['field'], message });
  if (!schema && !presence) refuse('the standard does not have this field here; correct it, or add presence');
  const isLimited = [limits.maxLength, limits.oneOf, limits.characters].some((limit) => limit !== undefined);
  if (schema && isLimited && !mayBeText(schema))
    refuse('this field is no text; remove maxLength, oneOf and characters');
  if (limits.effect && presence !== 'ignored') refuse('effect belongs to presence: ignored');
});

function mayBeText(schema: Schema): boolean {
  if ('absent' in schema) return true;
  const { type } = 'byVersion' in schema ? Object(Object(schema.byVersion)['1.3.11']) : schema;
  return type === 'string';
}

const level = z.strictObject({
  path: z.string().min(1).max(200).describe('As in the report, such as headers/PSU-IP-Address.'),
  rule: z.enum(rules).describe('As in the report, such as required.'),
  level: z
    .enum(['harmful', 'notable', 'usual'])
    .describe('harmful: the bank refuses it. notable, usual: the bank accepts it; it is only reported.'),
});

const profileSchema = z.strictObject({
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

export type ParsedProfile =
  | { readonly profile: Profile }
  | { readonly errors: readonly { readonly path: string; readonly why: string }[] };

/** Checks the content of a profile's file, after YAML or JSON was parsed. */
export function parseProfile(data: unknown): ParsedProfile {
  const result = profileSchema.safeParse(data ?? {});
  if (result.success) return { profile: result.data };
  return { errors: result.error.issues.map(({ path, message }) => ({ path: path.join('.'), why: message })) };
}

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
