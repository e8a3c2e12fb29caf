/** All settings as a flat list derived from the schema, for environment variables, suggestions and the documentation. */

import { z } from 'zod';
import type { SettingPath } from './object-path.ts';
import { schema } from './schema.ts';
import { describeDefault } from './setting-orders.ts';

/** Placeholder for the name of an environment or a tenant in the path of a setting. */
export const anyName = '*';

/** The part of JSON Schema that the configuration uses, and our own keywords. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: false | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly description?: string;
  /** The kind of quantity: `duration`, `size`, `rate` or `percentage`. */
  readonly unit?: string;
  /** A default that depends on other settings, in words. */
  readonly defaultText?: string;
}

export interface Setting {
  readonly path: readonly string[];
  readonly schema: JsonSchema;
  readonly required: boolean;
}

/** The configuration file as JSON Schema. Describes the input: durations are strings. The cast names the part we use. */
export const jsonSchema = withDefaultsDescribed(
  z.toJSONSchema(schema, {
    io: 'input',
    reused: 'inline',
    target: 'draft-7', // best supported by the YAML plugins of editors
  }) as JsonSchema,
  [],
);

/** Every setting, in the order of the schema; a list of objects is one setting. */
export const settings: readonly Setting[] = settingsIn(jsonSchema, [], false);

/** Adds to each description what the default of the setting follows. */
function withDefaultsDescribed(node: JsonSchema, path: readonly string[]): JsonSchema {
  const follows = describeDefault(path.join('.'));
  const properties = Object.entries(node.properties ?? {}).map(
    ([name, inner]) => [name, withDefaultsDescribed(inner, [...path, name])] as const,
  );
  return {
    ...node,
    ...(follows && { description: `${node.description} ${follows}` }),
    ...(node.properties && { properties: Object.fromEntries(properties) }),
  };
}

function settingsIn(node: JsonSchema, path: readonly string[], required: boolean): readonly Setting[] {
  if (!node.properties) return [{ path, schema: node, required }];
  const named = Object.entries(node.properties).flatMap(([name, inner]) =>
    settingsIn(inner, [...path, name], node.required?.includes(name) ?? false),
  );
  return node.additionalProperties
    ? [...named, ...settingsIn(node.additionalProperties, [...path, anyName], false)]
    : named;
}

/** The schema of the setting at this path. */
export const schemaAt = (path: SettingPath): JsonSchema | undefined =>
  path.reduce<JsonSchema | undefined>(
    (at, key) =>
      typeof key === 'number'
        ? at?.items
        : (at?.properties?.[key] ?? (at?.additionalProperties || undefined)),
    jsonSchema,
  );

/** The names allowed in the mapping at this path. */
export function namesAt(path: SettingPath): readonly string[] {
  const node = schemaAt(path);
  return node ? namesIn(node) : [];
}

const namesIn = ({ properties = {}, anyOf = [] }: JsonSchema): readonly string[] => [
  ...Object.keys(properties),
  ...anyOf.flatMap(namesIn),
];
