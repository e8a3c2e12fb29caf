/** Turns raw settings into a configuration, or finds all errors in them. */

import { type ConfigError, configErrorsOf, pathOf, schemaErrorMessage } from './config-errors.ts';
import { type CrossCheck, type CrossCheckContext, settingCrossChecks } from './cross-checks.ts';
import { fileCrossChecks } from './cross-checks-files.ts';
import { limitCrossChecks } from './cross-checks-limits.ts';
import { notificationCrossChecks } from './cross-checks-notifications.ts';
import { type DerivedDefault, deriveDefaults } from './derive-defaults.ts';
import {
  isMapping,
  isWithin,
  pathsOverlap,
  removablePath,
  type SettingPath,
  valueAt,
  withoutValue,
  withValue,
} from './object-path.ts';
import { resolveDefaults } from './resolve-defaults.ts';
import { type Config, type Settings, schema } from './schema.ts';
import { environment } from './sections/environments.ts';

export type ValidationResult = ValidConfig | InvalidSettings;

interface InvalidSettings {
  readonly kind: 'invalid';
  readonly errors: readonly ConfigError[];
  /** If all settings are valid, and only files that they name cannot be used. */
  readonly config?: Config;
}

export interface ValidConfig {
  readonly kind: 'valid';
  readonly config: Config;
  /** The defaults that differ from the documented ones, because they follow other settings. */
  readonly derived: readonly DerivedDefault[];
  /** Whether the user wrote the setting, in the file or as an environment variable. */
  readonly isWritten: (path: SettingPath) => boolean;
}

/** Validates each setting by itself, and then the valid ones against each other. */
export function validateSettings(
  tree: unknown,
  context: Omit<CrossCheckContext, 'environmentNames' | 'isWritten'>,
): ValidationResult {
  const misplaced = misplacedSections(tree);
  const paths = misplaced.map(({ path }) => path);
  const placedTree = paths.reduce(withoutValue, tree);
  const { settings, validTree, errors, removedPaths } = parseValidPart(placedTree, {
    errors: misplaced,
    removedPaths: paths,
  });
  if (!settings) return { kind: 'invalid', errors };

  const isWritten = (path: SettingPath) => valueAt(validTree, path) !== undefined;
  const derived = deriveDefaults(settings, isWritten);
  const completeTree = derived.reduce<unknown>(
    (reduced, { path, value }) => withValue(reduced, path, value),
    validTree,
  );
  const config = resolveDefaults(schema.parse(completeTree), context.variables);
  const fullContext = { ...context, isWritten, environmentNames: environmentNamesIn(placedTree) };
  /** A removed setting has its default, which the user has not written: a contradiction with it is not the user's. */
  const isMeaningful = ({ path, related = [] }: ConfigError) =>
    ![path, ...related].some((involved) => removedPaths.some((removed) => pathsOverlap(involved, removed)));
  const errorsOf = (checks: readonly CrossCheck[]) =>
    checks.flatMap((check) => check(config, fullContext)).filter(isMeaningful);
  const settingErrors = [
    ...errors,
    ...errorsOf([...settingCrossChecks, ...notificationCrossChecks, ...limitCrossChecks]),
  ];
  const fileErrors = errorsOf(fileCrossChecks);

  if (settingErrors.length > 0) return { kind: 'invalid', errors: [...settingErrors, ...fileErrors] };
  if (fileErrors.length > 0) return { kind: 'invalid', errors: fileErrors, config };
  return { kind: 'valid', config, derived, isWritten };
}

const environmentNamesIn = (tree: unknown) => {
  const environments = valueAt(tree, ['environments']);
  return isMapping(environments) ? Object.keys(environments).filter((name) => name !== 'active') : [];
};

/** Sections among the environments: as environments, they would get an error for each of their settings. */
const misplacedSections = (tree: unknown): readonly ConfigError[] =>
  environmentNamesIn(tree)
    .filter((name) => Object.hasOwn(schema.shape, name))
    .filter((name) => valueAt(tree, ['environments', name, 'baseUrl']) === undefined)
    .map((name) => {
      const forOne = Object.hasOwn(environment.shape, name)
        ? `; for one environment, write environments.NAME.${name}`
        : '';
      return {
        path: ['environments', name],
        message: `this is a section, not an environment; move it to the top level${forOne}`,
      };
    });

interface ValidPart {
  readonly settings?: Settings;
  /** What the user wrote, without the invalid settings. */
  readonly validTree?: unknown;
  readonly errors: readonly ConfigError[];
  /** Cross-checks cannot say anything about these settings. */
  readonly removedPaths: readonly SettingPath[];
}

/** Each round removes at least one setting. */
const maxRounds = 20;

/**
 * Parses the settings without the invalid ones, so that one error does not hide the others.
 *
 * A removed setting takes its default. An error that this causes is not reported: it is not the user's.
 */
function parseValidPart(
  tree: unknown,
  found: ValidPart = { errors: [], removedPaths: [] },
  round = 1,
): ValidPart {
  const parsed = schema.safeParse(tree, { error: schemaErrorMessage, reportInput: true });
  if (parsed.success) return { ...found, settings: parsed.data, validTree: tree };
  if (round > maxRounds) return found;

  const errors = parsed.error.issues.flatMap(configErrorsOf);
  const newErrors = errors.filter(
    ({ path }) => !found.removedPaths.some((removed) => isWithin(path, removed)),
  );
  const invalidPaths = parsed.error.issues.flatMap((issue) =>
    issue.code === 'invalid_union' ? [pathOf(issue)] : configErrorsOf(issue).map(({ path }) => path),
  ); // of a union, the whole value: without a key, it may be invalid for another reason
  const toRemove = invalidPaths.map((path) => removablePath(tree, path));
  return parseValidPart(
    toRemove.reduce(withoutValue, tree),
    { errors: [...found.errors, ...newErrors], removedPaths: [...found.removedPaths, ...toRemove] },
    round + 1,
  );
}
