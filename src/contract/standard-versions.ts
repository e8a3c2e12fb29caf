/**
 * How the contract's data states the differences between versions of the standard: one set of schemas, with `byVersion` where the
 * versions differ.
 */

import type { Deviation, Effect, Level, Rule } from './deviation.ts';

export type StandardVersion = (typeof standardVersions)[number];

/** The versions whose differences are known, in order. */
export const standardVersions = ['1.3.6', '1.3.11'] as const;

/** A JSON Schema (draft-07), with the keywords of `compile-schemas.ts` and `byVersion`. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

/** What a message is reported with that has a field which its version of the standard lacks. */
export type Absence = Omit<Deviation, 'path'>;

/** A field that 1.3.11 adds. */
export const since11 = (schema: Schema, absent: Absence): Schema => ({
  byVersion: { '1.3.6': { absent }, '1.3.11': schema },
});

/** A field that has another schema in each version. */
export const byVersion = (of6: Schema, of11: Schema): Schema => ({
  byVersion: { '1.3.6': of6, '1.3.11': of11 },
});

/** A field that neither version has in this place. */
export const absent = (rule: Rule, level: Level, effect: Effect): Schema => ({
  absent: { rule, level, effect },
});

/** Required in 1.3.11, but not in 1.3.6. */
export const requiredSince11 = (required6: readonly string[], added: readonly string[]): Schema => ({
  byVersion: { '1.3.6': required6, '1.3.11': [...required6, ...added] },
});

/**
 * The version of the contract for an environment's `standardVersion`: the newest known version up to it; if there is none, the
 * oldest known version.
 */
export function nearestVersion(label: string): StandardVersion {
  const wanted = numbersOf(label);
  return standardVersions.findLast((known) => compare(numbersOf(known), wanted) <= 0) ?? standardVersions[0];
}

const numbersOf = (version: string) => version.split('.').map(Number);

function compare(one: readonly number[], other: readonly number[]): number {
  for (let at = 0; at < 3; at++) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The schema of one version: replaces each `byVersion` in it with the variant of the version. */
export function ofVersion(version: StandardVersion, { byVersion: variants, ...schema }: Schema): Schema {
  const chosen = isSchema(variants) ? variants[version] : undefined;
  const own = Object.entries(schema).map(([keyword, value]) => [keyword, resolveIn(version, value)]);
  return { ...Object.fromEntries(own), ...(isSchema(chosen) ? ofVersion(version, chosen) : {}) };
}

function resolveIn(version: StandardVersion, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => resolveIn(version, item));
  if (!isSchema(value)) return value;
  const variants = value.byVersion;
  if (isSchema(variants) && Array.isArray(variants[version])) return variants[version];
  return ofVersion(version, value);
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
