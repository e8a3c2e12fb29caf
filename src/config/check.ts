/** Turns raw settings into a configuration, or finds everything that is wrong with them. */

import { complete } from './complete.ts';
import { checks } from './contradictions/all.ts';
import type { Circumstances } from './contradictions/contradiction.ts';
import { type Fault, faultsOf, wording } from './faults.ts';
import type { Path } from './path.ts';
import { type Config, type Settings, schema } from './schema.ts';
import { isMapping, overlap, removable, valueAt, within, without } from './trees.ts';

/** What came of it: a configuration only if there are no faults. */
export type Checked =
  | { readonly kind: 'valid'; readonly config: Config }
  | { readonly kind: 'faulty'; readonly faults: readonly Fault[] };

/** Checks raw settings, each by itself and then all together. */
export function check(tree: unknown, circumstances: Omit<Circumstances, 'environmentNames'>): Checked {
  const { settings, faults, spoiled } = salvage(tree);
  if (!settings) return { kind: 'faulty', faults };

  const config = complete(settings);
  const contradictions = checks
    .flatMap((find) => find(config, { ...circumstances, environmentNames: environmentNamesIn(tree) }))
    .filter(
      ({ path, against }) => ![path, ...against].some((part) => spoiled.some((bad) => overlap(part, bad))),
    );

  if (faults.length + contradictions.length === 0) return { kind: 'valid', config };
  return { kind: 'faulty', faults: [...faults, ...contradictions] };
}

const environmentNamesIn = (tree: unknown) => {
  const written = valueAt(tree, ['environments']);
  return isMapping(written) ? Object.keys(written).filter((name) => name !== 'active') : [];
};

interface Salvaged {
  readonly settings?: Settings;
  readonly faults: readonly Fault[];
  /** Where something was left out: nothing can be said about these settings. */
  readonly spoiled: readonly Path[];
}

/** How often settings can be left out before the rest is given up; each time at least one goes. */
const mostRounds = 20;

/**
 * Reads the settings without those that are wrong, so that one mistake does not hide the others.
 *
 * What is left out takes its default. Where that leads to another fault, it is not told: it is no fault of the user's.
 */
function salvage(tree: unknown, found: Salvaged = { faults: [], spoiled: [] }, round = 1): Salvaged {
  const parsed = schema.safeParse(tree, { error: wording, reportInput: true });
  if (parsed.success) return { ...found, settings: parsed.data };
  if (round > mostRounds) return found;

  const faults = parsed.error.issues.flatMap(faultsOf);
  const news = faults.filter(({ path }) => !found.spoiled.some((bad) => within(path, bad)));
  const broken = faults.map(({ path }) => removable(tree, path));
  const rest = broken.reduce(without, tree);
  return salvage(
    rest,
    { faults: [...found.faults, ...news], spoiled: [...found.spoiled, ...broken] },
    round + 1,
  );
}
