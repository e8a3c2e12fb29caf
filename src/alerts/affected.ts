/** Whom a failure affects: each tenant, and each product, is judged by its own last payments. */

import { estimateTenants, type InitiationCount } from '../telemetry/initiations.ts';

/** Initiations of the last so many seconds: all of them, or those of an environment, or of a product. */
export type Scope = (seconds: number) => readonly InitiationCount[];
export type Selects = (one: InitiationCount) => boolean;

/** What fails, and in which window this was found. */
interface Failure {
  readonly selects: Selects;
  readonly seconds: number;
}

/** With fewer payments in a window, a longer one decides: a single time-out says little. */
const minPayments = 3;
const longestSeconds = 300;
const longerSeconds = [20, 30, 60, 120, longestSeconds];
/** For how long a success says that a tenant or a product works; and if only one tenant fails. Seconds. */
const worksFor = 60;
const worksForBesideOne = longestSeconds;
/** With this share of failures in a window, those that fail have failed during all of it. */
const steadyShare = 0.95;

/** @returns `tenants` or `products`, if at least as many of them work as fail */
export function unaffected(scope: Scope, failure: Failure): 'tenants' | 'products' | undefined {
  if (othersWork(scope, failure, tenants)) return 'tenants';
  return othersWork(scope, failure, products) ? 'products' : undefined;
}

/** The number of a tenant, or the name of a product. */
type Payer = number | string;

interface Grouping {
  /** How many initiations are of whom. */
  readonly partsOf: (one: InitiationCount) => readonly (readonly [Payer, number])[];
  /** For how long a success counts, if so many fail, or may fail: seconds. */
  readonly worksFor: (failing: number) => number;
  readonly areEnough: (working: number, failing: number) => boolean;
}

const tenants: Grouping = {
  partsOf: (one) => one.tenants,
  worksFor: (failing) => (failing === 1 ? worksForBesideOne : worksFor),
  areEnough(working, failing) {
    const estimated = estimateTenants(failing);
    return estimateTenants(working + failing) - estimated >= estimated;
  },
};

const products: Grouping = {
  partsOf: ({ product, count }) => [[product, count]],
  worksFor: () => worksFor,
  areEnough: (working, failing) => working >= failing,
};

/**
 * Those that do not fail must also not fail together: when everybody begins to fail, each one that pays rarely still has more successes of
 * before than failures.
 */
function othersWork(scope: Scope, { selects, seconds }: Failure, grouping: Grouping): boolean {
  const countsOf = (length: number) => countsIn(scope(length), selects, grouping);
  const windows = [seconds, ...longerSeconds.filter((longer) => longer > seconds)].map((length) => ({
    length,
    counts: countsOf(length),
  }));
  const sumsOf = (payers: readonly Payer[]) =>
    windows.map(({ length, counts }) => ({
      ...sumOf(payers.flatMap((payer) => counts.get(payer) ?? [])),
      length,
    }));
  const lastOf = (payers: readonly Payer[]) => {
    const sums = sumsOf(payers);
    return sums.find(({ total }) => total >= minPayments) ?? sums.at(-1) ?? noCounts();
  };
  const verdicts = Map.groupBy(windows.at(-1)?.counts.keys() ?? [], (payer) => verdictOn(lastOf([payer])));
  const failing = verdicts.get('fails') ?? [];
  const undecided = verdicts.get('undecided') ?? [];
  const others = new Set(verdicts.get('works'));
  // A success during the failure counts longer than one that may have been before it.
  const during = sumsOf(failing).flatMap(({ length, total, selected }) =>
    selected >= steadyShare * total ? [length] : [],
  );
  const recentSeconds = Math.max(grouping.worksFor(failing.length + undecided.length), ...during);
  const recent = countsOf(Math.min(longestSeconds, recentSeconds));
  const working = [...recent].flatMap(([payer, { accepted }]) =>
    accepted > 0 && others.has(payer) ? [payer] : [],
  );
  if (failing.length === 0 || working.length === 0) return false;
  return grouping.areEnough(working.length, failing.length) && !fails(lastOf([...working, ...undecided]));
}

const fails = ({ total, selected }: Readonly<Counts>) => selected >= total / 2;

/** A single failure of one that pays rarely decides nothing. */
function verdictOn(last: Readonly<Counts>): 'fails' | 'works' | 'undecided' {
  if (last.total < minPayments && last.selected === 1) return 'undecided';
  return fails(last) ? 'fails' : 'works';
}

interface Counts {
  total: number;
  selected: number;
  accepted: number;
}

const noCounts = (): Counts => ({ total: 0, selected: 0, accepted: 0 });

function countsIn(
  all: readonly InitiationCount[],
  selects: Selects,
  { partsOf }: Grouping,
): ReadonlyMap<Payer, Readonly<Counts>> {
  const found = new Map<Payer, Counts>();
  for (const one of all) {
    const isSelected = selects(one);
    const isAccepted = one.result === 'accepted';
    for (const [payer, count] of partsOf(one)) {
      const counts = found.get(payer) ?? noCounts();
      found.set(payer, counts);
      counts.total += count;
      if (isSelected) counts.selected += count;
      if (isAccepted) counts.accepted += count;
    }
  }
  return found;
}

function sumOf(all: readonly Readonly<Counts>[]): Readonly<Counts> {
  const sum = noCounts();
  for (const { total, selected, accepted } of all) {
    sum.total += total;
    sum.selected += selected;
    sum.accepted += accepted;
  }
  return sum;
}
