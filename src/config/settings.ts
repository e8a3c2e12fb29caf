/** The settings as a flat list, read from the schema: for environment variables, suggestions and the documentation. */

import { z } from 'zod';
import type { SettingPath } from './object-path.ts';
import { schema } from './schema.ts';

/** Stands for the name of any environment in the path of a setting. */
export const anyEnvironment = '*';

/** The part of JSON Schema that the configuration makes use of, and our own words in it. */
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
  /** Which unit the value is written with. */
  readonly unit?: string;
  /** What is taken instead of a value that is left out, in words. */
  readonly defaultText?: string;
}

/** One setting that can be given a value. */
export interface Setting {
  readonly path: readonly string[];
  readonly schema: JsonSchema;
  readonly required: boolean;
}

/** The whole configuration file as JSON Schema, as it is written: durations are texts. Its type is what we make use of. */
export const jsonSchema = z.toJSONSchema(schema, {
  io: 'input',
  reused: 'inline',
  target: 'draft-7', // what the editors' YAML plugins understand best
}) as JsonSchema;

/** Every setting that can be given a value, in the order of the schema; lists of objects count as one. */
export const settings: readonly Setting[] = settingsIn(jsonSchema, [], false);

function settingsIn(node: JsonSchema, path: readonly string[], required: boolean): readonly Setting[] {
  if (!node.properties) return [{ path, schema: node, required }];
  const named = Object.entries(node.properties).flatMap(([name, inner]) =>
    settingsIn(inner, [...path, name], node.required?.includes(name) ?? false),
  );
  return node.additionalProperties
    ? [...named, ...settingsIn(node.additionalProperties, [...path, anyEnvironment], false)]
    : named;
}

/** The names that may stand in the mapping at this path. */
export function namesAt(path: SettingPath): readonly string[] {
  const node = path.reduce<JsonSchema | undefined>(
    (at, key) =>
      typeof key === 'number'
        ? at?.items
        : (at?.properties?.[key] ?? (at?.additionalProperties || undefined)),
    jsonSchema,
  );
  const mappings = [node, ...(node?.anyOf ?? [])];
  return mappings.flatMap((mapping) => Object.keys(mapping?.properties ?? {}));
}
