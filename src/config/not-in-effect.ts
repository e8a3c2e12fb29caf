/** Settings that are understood but do nothing yet, so that nobody relies on them unwarned. */

import { isDeepStrictEqual } from 'node:util';
import { complete } from './complete.ts';
import { type Config, schema } from './schema.ts';
import { valueAt } from './trees.ts';

/** A setting, when it counts as set, and what does not happen yet. */
interface Row {
  readonly setting: string;
  readonly missing: string;
  readonly isSet: (config: Config) => boolean;
}

const whole = (setting: string, missing: string): Row => ({
  setting,
  missing,
  isSet: (config) => !isDeepStrictEqual(at(config, setting), at(defaults, setting)),
});

const rows: readonly Row[] = [whole('listen.reusePort', 'the port is not shared')];

/** One sentence for each setting that differs from its default and has no effect yet. */
export const notInEffectYet = (config: Config): readonly string[] =>
  rows
    .filter(({ isSet }) => isSet(config))
    .map(({ setting, missing }) => `${setting} has no effect yet: ${missing}`);

const defaults = complete(schema.parse({}));
const at = (config: Config, setting: string) => valueAt(config, setting.split('.'));
