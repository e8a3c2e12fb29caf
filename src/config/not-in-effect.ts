/** Settings that are understood but do nothing yet, so that nobody relies on them unwarned. */

import { isDeepStrictEqual } from 'node:util';
import { complete } from './complete.ts';
import { type Config, type EnvironmentSettings, schema } from './schema.ts';
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

const each = (
  setting: string,
  missing: string,
  isSet: (environment: EnvironmentSettings, config: Config) => boolean,
): Row => ({
  setting: `environments.*.${setting}`,
  missing,
  isSet: (config) => config.environments.all.some((environment) => isSet(environment, config)),
});

const rows: readonly Row[] = [
  whole('listen.trustedProxies', 'no proxy is believed'),
  whole('tracing', 'nothing is traced'),
  each('tls', 'files that change are read at the next start only', ({ tls }) => tls !== undefined),
  each('signing', 'requests are not signed', ({ signing }) => signing !== undefined),
];

/** One sentence for each setting that differs from its default and has no effect yet. */
export const notInEffectYet = (config: Config): readonly string[] =>
  rows
    .filter(({ isSet }) => isSet(config))
    .map(({ setting, missing }) => `${setting} has no effect yet: ${missing}`);

const defaults = complete(schema.parse({}));
const at = (config: Config, setting: string) => valueAt(config, setting.split('.'));
