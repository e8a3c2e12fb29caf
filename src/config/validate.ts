/** Turns raw settings into a configuration, or finds everything that is wrong with them. */

import { type ConfigError, configErrorsOf, schemaErrorMessage } from './config-errors.ts';
import { checks } from './contradictions/all.ts';
import type { CrossCheckContext } from './contradictions/contradiction.ts';
import {
  isMapping,
  isWithin,
  pathsOverlap,
  removablePath,
  type SettingPath,
  valueAt,
  withoutValue,
} from './object-path.ts';
import { resolveDefaults } from './resolve-defaults.ts';
import { type Config, type Settings, schema } from './schema.ts';

/** What came of it: a configuration only if there are no faults. */
export type ValidationResult =
  | { readonly kind: 'valid'; readonly config: Config }
  | { readonly kind: 'faulty'; readonly errors: readonly ConfigError[] };

/** Checks raw settings, each by itself and then all together. */
export function validateSettings(
  tree: unknown,
  circumstances: Omit<CrossCheckContext, 'environmentNames'>,
): ValidationResult {
  const { settings, errors, removedPaths } = parseValidPart(tree);
  if (!settings) return { kind: 'faulty', errors };

  const config = resolveDefaults(settings);
  const contradictions = checks
    .flatMap((find) => find(config, { ...circumstances, environmentNames: environmentNamesIn(tree) }))
    .filter(
      ({ path, against }) =>
        ![path, ...against].some((part) => removedPaths.some((bad) => pathsOverlap(part, bad))),
    );

  if (errors.length + contradictions.length === 0) return { kind: 'valid', config };
  return { kind: 'faulty', errors: [...errors, ...contradictions] };
}

const environmentNamesIn = (tree: unknown) => {
  const written = valueAt(tree, ['environments']);
  return isMapping(written) ? Object.keys(written).filter((name) => name !== 'active') : [];
};

interface ValidPart {
  readonly settings?: Settings;
  readonly errors: readonly ConfigError[];
  /** Where something was left out: nothing can be said about these settings. */
  readonly removedPaths: readonly SettingPath[];
}

/** How often settings can be left out before the rest is given up; each time at least one goes. */
const maxRounds = 20;

/**
 * Reads the settings without those that are wrong, so that one mistake does not hide the others.
 *
 * What is left out takes its default. Where that leads to another fault, it is not told: it is no fault of the user's.
 */
function parseValidPart(
  tree: unknown,
  found: ValidPart = { errors: [], removedPaths: [] },
  round = 1,
): ValidPart {
  const parsed = schema.safeParse(tree, { error: schemaErrorMessage, reportInput: true });
  if (parsed.success) return { ...found, settings: parsed.data };
  if (round > maxRounds) return found;

  const faults = parsed.error.issues.flatMap(configErrorsOf);
  const news = faults.filter(({ path }) => !found.removedPaths.some((bad) => isWithin(path, bad)));
  const broken = faults.map(({ path }) => removablePath(tree, path));
  const rest = broken.reduce(withoutValue, tree);
  return parseValidPart(
    rest,
    { errors: [...found.errors, ...news], removedPaths: [...found.removedPaths, ...broken] },
    round + 1,
  );
}
