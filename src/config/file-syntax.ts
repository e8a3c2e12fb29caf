/** The effective settings of a configuration in the syntax of the file: with units, and with the names of its sections. */

import { isMapping } from './object-path.ts';
import type { Config, RedisSettings } from './schema.ts';
import { type JsonSchema, jsonSchema } from './settings.ts';
import { formatQuantity, unitsByName } from './units.ts';

export type SettingsTree = Readonly<Record<string, unknown>>;

/** Every effective setting, in the order of the documentation. The values are those of the file: it may contain secrets. */
export function settingsInFileSyntax(config: Config): SettingsTree {
  const { active, all } = config.environments;
  const tree = {
    ...config,
    environments: { active, ...byName(all) },
    state: { ...config.state, redis: config.state.redis && redisInFileSyntax(config.state.redis) },
  };
  return mappingInFileSyntax(tree, jsonSchema);
}

const byName = <Named extends { readonly name: string }>(all: readonly Named[]) =>
  Object.fromEntries(all.map((one) => [one.name, one]));

function redisInFileSyntax(redis: RedisSettings): unknown {
  switch (redis.kind) {
    case 'single':
      return redis.url;
    case 'cluster':
      return { cluster: redis.urls };
    case 'sentinels':
      return { sentinels: redis.urls, name: redis.name };
  }
}

function inFileSyntax(value: unknown, schema: JsonSchema): unknown {
  const unit = unitsByName[schema.unit ?? ''];
  if (unit && typeof value === 'number') return formatQuantity(unit, value);
  if (Array.isArray(value)) return value.map((item) => inFileSyntax(item, schema.items ?? {}));
  return isMapping(value) && schema.properties ? mappingInFileSyntax(value, schema) : value;
}

/** Only the keys of the schema, in its order: a resolved configuration also has others. */
function mappingInFileSyntax(mapping: SettingsTree, schema: JsonSchema): SettingsTree {
  const { properties = {}, additionalProperties: other } = schema;
  const known = Object.entries(properties);
  const others = Object.keys(mapping).filter((key) => !Object.hasOwn(properties, key));
  const keys = other ? [...known, ...others.map((key) => [key, other] as const)] : known;
  return Object.fromEntries(
    keys
      .filter(([key]) => Object.hasOwn(mapping, key) && mapping[key] !== undefined)
      .map(([key, inner]) => [key, inFileSyntax(mapping[key], inner)]),
  );
}
