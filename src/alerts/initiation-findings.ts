/** Whether customers can pay: what became of the initiations of all instances. */

import type { InitiationCount } from '../telemetry/initiations.ts';
import { type Scope, type Selects, unaffected } from './affected.ts';
import { clockTime, countOf, type Finding, listText, type Moment, percentOf } from './finding.ts';

/** Of the median hour of the last day, if there were enough initiations. */
export interface UsualInitiations {
  readonly environment: string;
  /** Those that the bank has refused with other codes than 401 and 403: 0 to 1. */
  readonly refusedShare: number;
  /** How long the bank takes, in milliseconds; 0 if it has answered none. */
  readonly answerMs: number;
}

export interface InitiationFacts extends Moment {
  /** Those of the last so many seconds. */
  readonly initiationsOf: Scope;
  /** For how long no initiation of an environment has ended. */
  readonly quietSeconds: (environment: string) => number;
  readonly isConfigured: (environment: string) => boolean;
  readonly usual: readonly UsualInitiations[];
  /** How many tenants are configured; without clients, all callers are one. */
  readonly tenants: number;
}

/** So many initiations, of which so many are selected, are enough. */
interface Window {
  readonly seconds: number;
  readonly minimum: number;
  readonly share: number;
}

const windows = (minimum: number, share: number, ...lengths: readonly number[]): readonly Window[] =>
  lengths.map((seconds) => ({ seconds, minimum, share }));

/** How long an initiation matters, and for how long the last one says whether customers can pay. Seconds. */
const longestSeconds = 900;
/** For the failure of most: soon if there is much traffic, and at all if there is little. */
const most = [...windows(5, 0.8, 10, 60, 120), ...windows(10, 0.5, 60, 300), ...windows(3, 1, 300, 900)];
/** For 401 and 403 with a code about a token or a consent, which single TPPs cause. */
const mostUnauthorised = [...windows(10, 0.5, 60), ...windows(10, 0.8, 300, 900)];
/** For the failure of some: the longer window asks for less, so that a share near the limit does not come and go. */
const some = [...windows(10, 0.1, 60), ...windows(30, 0.08, 300)];
const minSome = 5;
const someUnauthorised = windows(10, 1 / 3, 60);
/** Refusals with other codes may be the fault of a TPP. */
const allRefused = windows(10, 0.9, 300, 900);
/** For both, if several tenants are concerned: a fault of each of them is improbable. */
const allOfSeveral = [...windows(5, 1, 300), ...windows(3, 1, 900)];
const refusals = {
  seconds: 30,
  minimum: 10,
  shareWithoutUsual: 0.5,
  minShare: 0.3,
  maxShare: 0.9,
  factor: 5,
};
const slowness = { seconds: 10, minimum: 5, ms: 2_000, msWithoutUsual: 5_000, factor: 3 };

/** A condition is over if one of these windows contradicts it, of those that are shorter than its own: 20 to 300. Seconds. */
const recoveries = Array.from({ length: 29 }, (_, index) => 20 + 10 * index);
const recovery = {
  minimum: 3,
  /** Of the share that was found. */
  maxPart: 0.25,
  /** How probable the last initiations would be if the share had not fallen. */
  maxChance: 0.001,
};

/** So many products are named, those with most failures. */
const maxProducts = 5;
/** With this share of all failures, the others are not worth a word. */
const mainShare = 0.8;

const isUnauthorised = ({ result }: InitiationCount): boolean => /^40[13]/.test(result);
/** The code is not about a token, a consent or a product: these may be the fault of one TPP. */
const isOfGateway = (one: InitiationCount) =>
  isUnauthorised(one) && !/^\d+ (?:TOKEN|CONSENT|PSU|PRODUCT)_/.test(one.result);
export const isRefused = (one: InitiationCount): boolean => /^[1-4]/.test(one.result) && !isUnauthorised(one);
const hasResult = (wanted: string) => (one: InitiationCount) => one.result === wanted;
const isFailed = hasResult('failed');
const isOfTenant = hasResult('tenant-blocked');
const isBlocked = (one: InitiationCount) => one.result === 'blocked' || isOfTenant(one);
export const isAnswered = (one: InitiationCount): boolean => !isFailed(one) && !isBlocked(one);
/** For whatever reason, customers cannot pay. */
const isStopped = (one: InitiationCount) => isFailed(one) || isBlocked(one) || isUnauthorised(one);
const isStoppedForSure = (one: InitiationCount) => isFailed(one) || isBlocked(one) || isOfGateway(one);

export function findInitiations(facts: InitiationFacts): readonly Finding[] {
  const { active = '', isConfigured, quietSeconds } = facts;
  // What was refused before its environment was chosen would have gone to the active one.
  const all = narrow(facts.initiationsOf, (one) =>
    one.environment === '' ? { ...one, environment: active } : one,
  );
  const environments = new Set(all(longestSeconds).map(({ environment }) => environment));
  return [...environments]
    .filter((environment) => environment === '' || isConfigured(environment))
    .flatMap((environment) => {
      const isOwn: Selects = (one) => one.environment === environment;
      const names = environment === active ? [environment, ''] : [environment];
      const quiet = Math.min(...names.map(quietSeconds));
      // The windows end with the last initiation: while nobody tries to pay, no success leaves a window before a failure does.
      const own = within((seconds) => all(seconds + quiet), isOwn);
      const others = within(own, (one) => !isOfTenant(one));
      const found = [...stopped(facts, own, environment), ...refused(facts, others, environment)];
      return [
        ...found.map((finding) => ({ ...finding, text: `${finding.text}${quietText(quiet, facts)}` })),
        ...slow(facts, within(all, isOwn), environment),
      ];
    });
}

/** So many seconds between two payments are not worth a word. */
const shortQuiet = 60;

const quietText = (quiet: number, { nowMs }: Moment) =>
  quiet <= shortQuiet ? '' : ` Nobody has tried to pay since ${clockTime(nowMs - quiet * 1_000)}.`;

/** Each window is computed once. */
function narrow(scope: Scope, change: (one: InitiationCount) => InitiationCount | readonly never[]): Scope {
  const known = new Map<number, readonly InitiationCount[]>();
  return (seconds) => {
    const counts = known.get(seconds) ?? scope(seconds).flatMap(change);
    known.set(seconds, counts);
    return counts;
  };
}

const within = (scope: Scope, selects: Selects): Scope => narrow(scope, (one) => (selects(one) ? one : []));

interface Share {
  readonly seconds: number;
  readonly selects: Selects;
  readonly part: readonly InitiationCount[];
  readonly count: number;
  readonly total: number;
  readonly share: number;
}

const sum = (all: readonly InitiationCount[]) => all.reduce((total, { count }) => total + count, 0);

function shareIn(scope: Scope, seconds: number, selects: Selects): Share {
  const all = scope(seconds);
  const part = all.filter(selects);
  const [count, total] = [sum(part), sum(all)];
  return { seconds, selects, part, count, total, share: total === 0 ? 0 : count / total };
}

/** The first window in which enough are selected, unless this is over. */
function exceeded(
  scope: Scope,
  all: readonly Window[],
  selects: Selects,
  minSelected = 1,
): Share | undefined {
  if (!scope(longestSeconds).some(selects)) return undefined;
  return all
    .map((window) => ({ window, found: shareIn(scope, window.seconds, selects) }))
    .filter(({ window, found }) => found.total >= window.minimum && found.share >= window.share)
    .filter(({ found }) => found.count >= minSelected)
    .find(({ found }) => !isOver(scope, selects, found))?.found;
}

/** Only successes end a condition: so many that they are no chance (Chernoff's bound of a binomial distribution). */
function isOver(scope: Scope, selects: Selects, found: Share): boolean {
  return recoveries.some((shorter) => {
    if (shorter >= found.seconds) return false;
    const last = shareIn(scope, shorter, selects);
    // Before them: otherwise, failures that leave the window would make the successes after them look like a chance again.
    const share = Math.max(found.share, (found.count - last.count) / (found.total - last.total + 1));
    if (last.total < recovery.minimum || last.share > recovery.maxPart * share) return false;
    const entropy = divergence(last.share, share) + divergence(1 - last.share, 1 - share);
    return Math.exp(-last.total * entropy) <= recovery.maxChance;
  });
}

/** A term of the relative entropy of two distributions. */
const divergence = (one: number, other: number) => (one === 0 ? 0 : one * Math.log(one / other));

const productsOf = (all: readonly InitiationCount[]) => new Set(all.map(({ product }) => product));

/**
 * Whether most initiations of the environment, or of single products, come to nothing, for one reason or for several; otherwise, whether
 * some do. What the bank refuses because of its content says nothing about other payments, and is left out.
 */
function stopped(facts: InitiationFacts, own: Scope, environment: string): readonly Finding[] {
  const valid = within(own, (one) => !isRefused(one));
  const ofNoTenant = within(valid, (one) => !isOfTenant(one));
  const ofTenants = () => tenantBlocked(own, environment);
  const whole = stoppedIn(ofNoTenant);
  const all = whole ? undefined : stoppedForAll(valid);
  const found = whole ?? all;
  if (found) {
    const others = unaffected(all ? valid : ofNoTenant, found);
    const isActive = environment === '' || environment === facts.active;
    const isCritical = others === undefined && isActive && !mayBeOfOneTpp(found, facts);
    const severity = isCritical ? 'critical' : 'warning';
    return [describe(found, own, { severity, environment, others }), ...(all ? [] : ofTenants())];
  }
  const ofProducts = [...productsOf(ofNoTenant(longestSeconds).filter(isStopped))]
    .flatMap((product) => {
      const scope = within(ofNoTenant, (one) => one.product === product);
      const share = stoppedIn(scope);
      return share ? [{ share, scope, product, others: unaffected(scope, share) }] : [];
    })
    .toSorted((one, other) => other.share.count - one.share.count)
    .slice(0, maxProducts)
    .map(({ share, scope, ...more }) =>
      describe(share, scope, { severity: 'warning', environment, ...more }),
    );
  return [...ofProducts, ...ofSome(ofNoTenant, own, environment, ofProducts), ...ofTenants()];
}

const stoppedIn = (scope: Scope): Share | undefined =>
  exceeded(scope, most, isStoppedForSure) ??
  exceeded(scope, mostUnauthorised, isStopped) ??
  ofSeveral(exceeded(scope, allOfSeveral, isStopped));

/** Others that may be able to pay have not tried, and nearly all failures are for reasons that single TPPs cause. */
const mayBeOfOneTpp = (found: Share, { tenants }: InitiationFacts) =>
  tenants > 1 &&
  !isOfSeveral(found) &&
  sum(found.part.filter(isStoppedForSure)) < (1 - mainShare) * found.count;

const ofSeveral = (found: Share | undefined): Share | undefined =>
  found && isOfSeveral(found) ? found : undefined;

const isOfSeveral = ({ part }: Share) =>
  new Set(part.flatMap(({ tenants }) => tenants.map(([number]) => number))).size >= 2;

/** If nearly everything of several tenants is refused for reasons of single tenants, the reason is another one. */
function stoppedForAll(scope: Scope): Share | undefined {
  const found = ofSeveral(stoppedIn(scope));
  return found && !unaffected(scope, found) ? found : undefined;
}

/** One finding, which names all reasons that are frequent: they may take turns. */
function ofSome(
  scope: Scope,
  own: Scope,
  environment: string,
  known: readonly Finding[],
): readonly Finding[] {
  const isNew: Selects = (one) =>
    reasons.some(({ id, selects }) => selects(one) && !known.some((finding) => finding.id === id));
  const frequent = [
    exceeded(scope, some, (one) => isNew(one) && !isUnauthorised(one), minSome) ?? [],
    exceeded(scope, someUnauthorised, (one) => isNew(one) && isUnauthorised(one), minSome) ?? [],
  ].flat();
  const [most] = frequent.toSorted((one, other) => other.share - one.share);
  if (!most) return [];
  const selects: Selects = (one) => frequent.some((share) => share.selects(one));
  const found = shareIn(scope, most.seconds, selects);
  return [describe(found, own, { severity: 'warning', environment, others: unaffected(scope, found) })];
}

function tenantBlocked(own: Scope, environment: string): readonly Finding[] {
  const found = exceeded(own, some, isOfTenant, minSome);
  if (!found) return [];
  const text = `${describeShare(found)} were refused by the gateway for reasons that concern only their tenants: a tenant sends more than its share, or its circuit is open.`;
  const place = { severity: 'warning', environment: named(environment), subject: 'tenants' } as const;
  return [{ ...place, id: 'initiations-blocked', text }];
}

/** Why initiations come to nothing. */
const reasons = [
  {
    id: 'initiations-unauthorised',
    selects: isUnauthorised,
    amongOthers: (part: readonly InitiationCount[]) => `the bank has refused with ${dominant(part)}`,
    alone: (share: string, part: readonly InitiationCount[]) =>
      `The bank refuses payments with ${dominant(part)}: ${share}.`,
  },
  {
    id: 'initiations-fail',
    selects: isFailed,
    amongOthers: () => 'have no usable answer of the bank, 429 or 5xx',
    alone: (share: string) => `${share} have no usable answer of the bank, 429 or 5xx.`,
  },
  {
    id: 'initiations-blocked',
    selects: isBlocked,
    amongOthers: () => 'were refused by the gateway',
    alone: (share: string) => `${share} were refused by the gateway.`,
  },
] as const;

interface Place {
  readonly severity: Finding['severity'];
  readonly environment: string;
  readonly product?: string;
  /** Who only succeeds. */
  readonly others: 'tenants' | 'products' | undefined;
}

/** @param scope with what the bank has refused because of its content */
function describe(
  found: Share,
  scope: Scope,
  { severity, environment, product = '', others }: Place,
): Finding {
  const parts = reasons.flatMap((reason) => {
    const part = found.part.filter(reason.selects);
    return part.length === 0 ? [] : [{ ...reason, part, count: sum(part) }];
  });
  const main = parts.find(({ count }) => count >= mainShare * found.count);
  const text = main
    ? main.alone(describeShare({ ...found, count: main.count }, product), main.part)
    : `${describeShare(found, product)} fail: ${listText(parts.map(({ count, part, amongOthers }) => `${count} ${amongOthers(part)}`))}.`;
  const refusedCount = sum(scope(found.seconds).filter(isRefused));
  const more = refusedCount === 0 ? '' : ` Another ${refusedCount} were refused for their content.`;
  const working = others === undefined ? '' : ` Those of as many other ${others} succeed.`;
  return {
    id: main?.id ?? 'initiations-fail',
    group: 'initiations-stopped',
    severity,
    environment: named(environment),
    subject: product,
    text: `${text}${more}${working}`,
  };
}

/** `58 of 60 initiations of payments/sepa-credit-transfers in the last 60 s` */
const describeShare = ({ count, total, seconds }: Share, product = '') =>
  `${count} of ${countOf(total, 'initiation')}${product && ` of ${product}`} in the last ${seconds} s`;

/** The most frequent result. */
function dominant(part: readonly InitiationCount[]): string {
  const counts = [...Map.groupBy(part, ({ result }) => result)].map(
    ([result, all]) => [result, sum(all)] as const,
  );
  return counts.toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? '';
}

const named = (environment: string) => (environment === '' ? undefined : environment);

/** Finds in the environment; if it finds nothing, in each product. */
function refused(facts: InitiationFacts, scope: Scope, environment: string): readonly Finding[] {
  const usual = facts.usual.find((one) => one.environment === environment);
  const { seconds, minimum, minShare, maxShare, factor, shareWithoutUsual } = refusals;
  const share = usual
    ? Math.min(maxShare, Math.max(minShare, factor * usual.refusedShare))
    : shareWithoutUsual;
  const before = usual ? ` During the last day, it refused ${percentOf(usual.refusedShare)}.` : '';
  const find = (of: Scope) =>
    exceeded(of, [...windows(minimum, share, seconds), ...allRefused], isRefused) ??
    ofSeveral(exceeded(of, allOfSeveral, isRefused));
  const whole = find(scope);
  const found = whole
    ? [{ ...whole, product: '' }]
    : [...productsOf(scope(longestSeconds).filter(isRefused))].flatMap((product) => {
        const ofProduct = find(within(scope, (one) => one.product === product));
        return ofProduct ? [{ ...ofProduct, product }] : [];
      });
  return found
    .toSorted((one, other) => other.count - one.count)
    .slice(0, maxProducts)
    .map((one) => ({
      id: 'initiations-refused',
      severity: 'warning',
      environment: named(environment),
      subject: one.product,
      text: `The bank refuses payments, most with ${dominant(one.part)}: ${describeShare(one, one.product)}.${before}`,
    }));
}

function slow({ usual }: InitiationFacts, scope: Scope, environment: string): readonly Finding[] {
  const { seconds, minimum, ms, msWithoutUsual, factor } = slowness;
  const answered = scope(seconds).filter(isAnswered);
  const count = sum(answered);
  const mean = answered.reduce((total, { bankMs }) => total + bankMs, 0) / count;
  const before = usual.find((one) => one.environment === environment);
  const isKnown = before !== undefined && before.answerMs > 0;
  const limit = isKnown ? Math.max(ms, factor * before.answerMs) : msWithoutUsual;
  if (count < minimum || mean < limit) return [];
  const usually = isKnown ? `, instead of ${secondsText(before.answerMs)} during the last day` : '';
  const text = `The bank takes ${secondsText(mean)} for an initiation${usually}.`;
  return [{ id: 'bank-slow', severity: 'warning', environment: named(environment), text }];
}

const secondsText = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`);
