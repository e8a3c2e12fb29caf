/** Whether customers can pay: what became of the initiations of all instances. */

import { countTenants, type InitiationCount } from '../telemetry/initiations.ts';
import { countOf, type Finding, isImportant, listText, type Moment, percentOf } from './finding.ts';

/** Initiations of one environment during the last day. */
export interface UsualInitiations {
  readonly environment: string;
  readonly initiations: number;
  /** Of the median hour: those that the bank has refused with other codes than 401 and 403. 0 to 1. */
  readonly refusedShare: number;
  readonly answered: number;
  /** Of the median hour: how long the bank takes, in milliseconds. */
  readonly answerMs: number;
}

export interface InitiationFacts extends Moment {
  /** Those of the last so many seconds. */
  readonly initiationsOf: (seconds: number) => readonly InitiationCount[];
  readonly usual: readonly UsualInitiations[];
}

interface Window {
  readonly seconds: number;
  readonly minimum: number;
  readonly share: number;
}

/** For the failure of most: soon if there is much traffic, and at all if there is little. */
const most: readonly Window[] = [
  { seconds: 10, minimum: 5, share: 0.8 },
  { seconds: 60, minimum: 10, share: 0.5 },
  { seconds: 300, minimum: 3, share: 1 },
];
/** What has not failed for so long does not become a failure because earlier successes are out of the window. Seconds. */
const recentSeconds = 120;
/** The first window with so many initiations says whether they succeed again, whatever a longer window contains. Seconds. */
const recoveries = [10, 20, 30, 60];
const minRecovered = 3;
/** So many products are named for each reason, those with most failures. */
const maxProducts = 5;
const minute: readonly Window[] = most.filter(({ seconds }) => seconds === 60);
/** For the failure of some. */
const some: Window = { seconds: 60, minimum: 10, share: 0.1 };
const minSome = 5;
const someUnauthorised: Window = { ...some, share: 1 / 3 };
/** Refusals with other codes may be the fault of a TPP. */
const allRefused: Window = { seconds: 300, minimum: 10, share: 0.9 };
const refusals = {
  seconds: 30,
  minimum: 10,
  shareWithoutUsual: 0.5,
  minShare: 0.3,
  maxShare: 0.9,
  factor: 5,
};
const slowness = { seconds: 10, minimum: 5, ms: 2_000, msWithoutUsual: 5_000, factor: 3 };
/** Fewer initiations during the last day say little. */
const minUsual = 100;

const isUnauthorised = ({ result }: InitiationCount): boolean => /^40[13]/.test(result);
/** The code is not about a token, a consent or a product: these may be the fault of one TPP. */
const isOfGateway = (one: InitiationCount) =>
  isUnauthorised(one) && !/^\d+ (?:TOKEN|CONSENT|PSU|PRODUCT)_/.test(one.result);
export const isRefused = (one: InitiationCount): boolean => /^[1-4]/.test(one.result) && !isUnauthorised(one);
const hasResult = (wanted: string) => (one: InitiationCount) => one.result === wanted;
const isFailed = hasResult('failed');
const isBlocked = hasResult('blocked');
const isOfTenant = hasResult('tenant-blocked');
export const isAnswered = (one: InitiationCount): boolean =>
  !isFailed(one) && !isBlocked(one) && !isOfTenant(one);
/** For whatever reason, customers cannot pay. */
const isStopped = (one: InitiationCount) => isFailed(one) || isBlocked(one) || isOfGateway(one);

export function findInitiations(given: InitiationFacts): readonly Finding[] {
  const facts = { ...given, initiationsOf: createWindows(given) };
  const environments = new Set(facts.initiationsOf(300).map(({ environment }) => environment));
  const others = { ...facts, initiationsOf: createWindows(facts, (one) => !isOfTenant(one)) };
  /** What the bank refuses because of its content says nothing about whether other payments work. */
  const valid = {
    ...facts,
    initiationsOf: createWindows(facts, (one) => !isOfTenant(one) && !isRefused(one)),
  };
  return Array.from(environments, (environment) => [
    ...stopped(valid, environment),
    ...ofTenants(facts, environment),
    ...refused(others, environment),
    ...slow(others, environment),
  ]).flat();
}

/** For one reason, or, if there is no reason for which most of them fail, for several. */
function stopped(facts: InitiationFacts, environment: string): readonly Finding[] {
  const found = [
    ...unauthorised(facts, environment),
    ...failures(
      facts,
      environment,
      'initiations-fail',
      isFailed,
      'have no usable answer of the bank, or 5xx',
    ),
    ...failures(facts, environment, 'initiations-blocked', isBlocked, 'were refused by the gateway'),
  ];
  if (found.some(({ severity }) => severity === 'critical')) return found;
  const mixed = exceeded(facts, most, (one) => one.environment === environment, isStopped);
  if (!mixed || mixed.isOfFewTenants || !isCriticalIn(facts, environment)) return found;
  const reasons = [
    [`the bank has refused with ${dominant(mixed.part.filter(isOfGateway))}`, isOfGateway],
    ['have no usable answer of the bank, or 5xx', isFailed],
    ['were refused by the gateway', isBlocked],
  ] as const;
  const parts = reasons.flatMap(([what, selects]) => {
    const count = sum(mixed.part.filter(selects));
    return count === 0 ? [] : `${count} ${what}`;
  });
  const text = `${describeShare(mixed)} fail: ${listText(parts)}.`;
  return [
    ...found.filter(({ subject }) => subject !== ''),
    { id: 'initiations-fail', severity: 'critical', environment: named(environment), subject: '', text },
  ];
}

/** Without an environment, they would have gone to the active one. */
const isCriticalIn = (facts: InitiationFacts, environment: string) =>
  environment === '' || isImportant(facts, environment);

function ofTenants(facts: InitiationFacts, environment: string): readonly Finding[] {
  const part = exceeded(facts, [some], (one) => one.environment === environment, isOfTenant);
  if (!part || part.count < minSome) return [];
  const text = `${describeShare(part)} were refused by the gateway for reasons that concern only their tenants: a tenant sends more than its share, or its circuit is open.`;
  const found = { severity: 'warning', environment: named(environment), subject: 'tenants' } as const;
  return [{ ...found, id: 'initiations-blocked', text }];
}

/**
 * Each window is computed once, because several alerts look at it. What was refused before its environment was chosen would have gone to
 * the active one.
 */
function createWindows(
  { initiationsOf, active = '' }: InitiationFacts,
  selects: Selects = () => true,
): InitiationFacts['initiationsOf'] {
  const windows = new Map<number, readonly InitiationCount[]>();
  return (seconds) => {
    const known = windows.get(seconds);
    if (known) return known;
    const counts = initiationsOf(seconds)
      .filter(selects)
      .map((one) => (one.environment === '' ? { ...one, environment: active } : one));
    windows.set(seconds, counts);
    return counts;
  };
}

type Selects = (one: InitiationCount) => boolean;

interface Share {
  readonly part: readonly InitiationCount[];
  readonly count: number;
  readonly total: number;
  readonly share: number;
  /** Whether at least as many tenants have only payments that the bank accepts. */
  readonly isOfFewTenants: boolean;
}

const sum = (all: readonly InitiationCount[]) => all.reduce((total, { count }) => total + count, 0);

function shareOf(all: readonly InitiationCount[], selects: Selects): Share {
  const part = all.filter(selects);
  const [count, total] = [sum(part), sum(all)];
  const affected = tenantsOf(part);
  const unaffected = tenantsOf(all.filter((one) => !selects(one))) & ~affected;
  const isOfFewTenants = countTenants(affected) <= countTenants(unaffected);
  return { part, count, total, share: total === 0 ? 0 : count / total, isOfFewTenants };
}

const tenantsOf = (all: readonly InitiationCount[]) => all.reduce((bits, { tenants }) => bits | tenants, 0);

/** The first window in which so many are selected, unless the last ones are not. */
function exceeded(
  { initiationsOf }: InitiationFacts,
  windows: readonly Window[],
  within: Selects,
  selects: Selects,
): (Share & Window) | undefined {
  const shareIn = (seconds: number) => shareOf(initiationsOf(seconds).filter(within), selects);
  for (const window of windows) {
    const found = shareIn(window.seconds);
    if (found.total < window.minimum || found.share < window.share) continue;
    const last = recoveries.map(shareIn).find(({ total }) => total >= minRecovered);
    if (last?.count === 0 || (window.seconds > recentSeconds && shareIn(recentSeconds).count === 0)) continue;
    return { ...window, ...found };
  }
  return undefined;
}

/** Of an environment, or, if only that is concerned, of one product of it. */
function placesOf({ initiationsOf }: InitiationFacts, environment: string) {
  const own = initiationsOf(300).filter((one) => one.environment === environment);
  const products = [...new Set(own.map(({ product }) => product))];
  return {
    whole: { name: '', within: (one: InitiationCount) => one.environment === environment },
    products: products.map((product) => ({
      name: product,
      within: (one: InitiationCount) => one.environment === environment && one.product === product,
    })),
  };
}

/** Finds in the environment; if it finds nothing, in each product. */
function findIn(
  facts: InitiationFacts,
  environment: string,
  find: (within: Selects) => (Share & { readonly seconds: number }) | undefined,
): readonly (Share & { readonly seconds: number; readonly product: string })[] {
  const { whole, products } = placesOf(facts, environment);
  const found = find(whole.within);
  if (found) return [{ ...found, product: '' }];
  return products
    .flatMap(({ name, within }) => {
      const ofProduct = find(within);
      return ofProduct ? [{ ...ofProduct, product: name }] : [];
    })
    .toSorted((one, other) => other.count - one.count)
    .slice(0, maxProducts);
}

/** `58 of 60 initiations of payments/sepa-credit-transfers in the last 60 s` */
const describeShare = ({
  count,
  total,
  seconds,
  product = '',
}: Share & { readonly seconds: number; readonly product?: string }) =>
  `${count} of ${countOf(total, 'initiation')}${product && ` of ${product}`} in the last ${seconds} s`;

/** The most frequent result. */
function dominant(part: readonly InitiationCount[]): string {
  const counts = [...Map.groupBy(part, ({ result }) => result)].map(
    ([result, all]) => [result, sum(all)] as const,
  );
  return counts.toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? '';
}

const ofOthers = ({ isOfFewTenants }: Share) =>
  isOfFewTenants ? ' Those of as many other tenants succeed.' : '';

const named = (environment: string) => (environment === '' ? undefined : environment);

function unauthorised(facts: InitiationFacts, environment: string): readonly Finding[] {
  const find = (within: Selects) =>
    exceeded(facts, minute, within, isUnauthorised) ?? exceeded(facts, most, within, isOfGateway);
  const found = findIn(facts, environment, find);
  const within: Selects = (one) => one.environment === environment;
  const part = found.length > 0 ? undefined : exceeded(facts, [someUnauthorised], within, isUnauthorised);
  const shares = part
    ? [{ ...part, product: '', isPart: true }]
    : found.map((one) => ({ ...one, isPart: false }));
  return shares.map((one) => ({
    id: 'initiations-unauthorised',
    severity:
      one.isPart || one.product !== '' || one.isOfFewTenants || !isImportant(facts, environment)
        ? 'warning'
        : 'critical',
    environment: named(environment),
    subject: one.product,
    text: `The bank refuses payments with ${dominant(one.part)}: ${describeShare(one)}.${ofOthers(one)}`,
  }));
}

function failures(
  facts: InitiationFacts,
  environment: string,
  id: 'initiations-fail' | 'initiations-blocked',
  selects: Selects,
  what: string,
): readonly Finding[] {
  const found = findIn(facts, environment, (within) => exceeded(facts, most, within, selects));
  const whole = found.find(({ product }) => product === '');
  const part = exceeded(facts, [some], (one) => one.environment === environment, selects);
  const isCritical = whole !== undefined && !whole.isOfFewTenants && isCriticalIn(facts, environment);
  const shares = !whole && part && part.count >= minSome ? [{ ...part, product: '' }] : found;
  return shares.map((one) => ({
    id,
    severity: isCritical ? 'critical' : 'warning',
    environment: named(environment),
    subject: one.product,
    text: `${describeShare(one)} ${what}.${ofOthers(one)}`,
  }));
}

function refused(facts: InitiationFacts, environment: string): readonly Finding[] {
  const usual = facts.usual.find((one) => one.environment === environment);
  const isUsualKnown = usual !== undefined && usual.initiations >= minUsual;
  const { seconds, minimum, minShare, maxShare, factor, shareWithoutUsual } = refusals;
  const usualShare = isUsualKnown ? usual.refusedShare : 0;
  const share = isUsualKnown
    ? Math.min(maxShare, Math.max(minShare, factor * usualShare))
    : shareWithoutUsual;
  const before = isUsualKnown ? ` During the last day, it refused ${percentOf(usualShare)}.` : '';
  return findIn(facts, environment, (within) =>
    exceeded(facts, [{ seconds, minimum, share }, allRefused], within, isRefused),
  ).map((found) => ({
    id: 'initiations-refused',
    severity: 'warning',
    environment: named(environment),
    subject: found.product,
    text: `The bank refuses payments, most with ${dominant(found.part)}: ${describeShare(found)}.${before}`,
  }));
}

function slow({ initiationsOf, usual }: InitiationFacts, environment: string): readonly Finding[] {
  const { seconds, minimum, ms, msWithoutUsual, factor } = slowness;
  const answered = initiationsOf(seconds).filter((one) => one.environment === environment && isAnswered(one));
  const count = sum(answered);
  const mean = answered.reduce((total, { bankMs }) => total + bankMs, 0) / count;
  const before = usual.find((one) => one.environment === environment);
  const isKnown = before !== undefined && before.answered >= minUsual;
  const limit = isKnown ? Math.max(ms, factor * before.answerMs) : msWithoutUsual;
  if (count < minimum || mean < limit) return [];
  const usually = isKnown ? `, instead of ${secondsText(before.answerMs)} during the last day` : '';
  const text = `The bank takes ${secondsText(mean)} for an initiation${usually}.`;
  return [{ id: 'bank-slow', severity: 'warning', environment: named(environment), text }];
}

const secondsText = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`);
