/**
 * Combines the schemas of several contracts into one. Each value that satisfies it satisfies all of them. Most requests do, so that one
 * validation is enough.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Definitions } from './compile-schemas.ts';
import type { Schema } from './standard-versions.ts';

/** @param sets the definitions of each contract; all have the same names */
export function combineDefinitions(sets: readonly Definitions[]): Definitions {
  const [first = {}, ...others] = sets;
  return others.reduce(
    (combined, definitions) =>
      Object.fromEntries(
        Object.entries(combined).map(([name, schema]) => [
          name,
          combine(schema, definitions[name] ?? schema),
        ]),
      ),
    first,
  );
}

function combine(one: Schema, other: Schema): Schema {
  if (isDeepStrictEqual(one, other)) return one;
  if (one.absent) return one; // no value satisfies it
  if (other.absent) return other;
  const { properties: ofOne, required: requiredByOne, ...restOfOne } = one;
  const { properties: ofOther, required: requiredByOther, ...restOfOther } = other;
  if (!isSchema(ofOne) || !isSchema(ofOther) || !isDeepStrictEqual(restOfOne, restOfOther))
    return { allOf: [one, other] };
  const common = Object.keys(ofOne).filter((name) => Object.hasOwn(ofOther, name)); // a field that one of them does not have is unknown there
  return {
    ...restOfOne,
    properties: Object.fromEntries(
      common.map((name) => [name, combine(Object(ofOne[name]), Object(ofOther[name]))]),
    ),
    required: [...new Set([...namesIn(requiredByOne), ...namesIn(requiredByOther)])],
  };
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null;
const namesIn = (required: unknown): readonly unknown[] => (Array.isArray(required) ? required : []);
