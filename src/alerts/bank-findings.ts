/** What an instance finds about the bank: circuits, the rate, pauses, and certificates. */

import { certificateView, type InstalledCertificate } from '../certificates/installed-certificates.ts';
import type { Lane } from '../pis/operations.ts';
import type { CircuitView } from '../upstream/circuit/tenant-circuits.ts';
import type { Pause } from '../upstream/shaping/bank-pauses.ts';
import type { EnvironmentLimiterStats } from '../upstream/upstreams.ts';
import { clockTime, countOf, type Finding, isImportant, listText, type Moment } from './finding.ts';

export interface BankFacts extends Moment {
  readonly circuits: readonly CircuitView[];
  readonly limiters: readonly EnvironmentLimiterStats[];
  /** `shaping.rate` of an environment: calls per second. */
  readonly rateOf: (environment: string) => number | undefined;
  readonly certificates: readonly InstalledCertificate[];
}

export const findAtBank = (facts: BankFacts): readonly Finding[] => [
  ...circuits(facts),
  ...facts.circuits.flatMap(tenantCircuits),
  ...facts.limiters.flatMap((limiter) => [
    ...silence(limiter),
    ...loweredRate(limiter, facts),
    ...limiter.pauses.map((pause) => pauseOf(limiter, pause)),
    ...queue(limiter),
    ...limiter.tenantsAtLimit.map((tenant) => tenantAtLimit(limiter, tenant)),
  ]),
  ...facts.certificates.flatMap((certificate) => expiry(certificate, facts)),
];

/**
 * One for all lanes of an environment that are in the same state, except for payments: instances may have different lanes open, and their
 * alerts about payments must be one.
 */
function circuits({ circuits: all, active }: BankFacts): readonly Finding[] {
  const groups = Map.groupBy(
    all.filter(({ state, hold }) => hold !== null || state !== 'closed'),
    ({ environment, lane, state, hold }) =>
      JSON.stringify([environment, lane === 'write', hold === null ? isProbing(state) : hold]),
  );
  return [...groups.values()].flatMap((group): readonly Finding[] => {
    const [first] = group;
    if (!first) return [];
    const { environment, hold, state } = first;
    const isStopped = hold === 'open' || (hold === null && state !== 'probation');
    const isOfPayments = group.some(({ lane }) => lane === 'write');
    const severity = environment === active && isStopped && isOfPayments ? 'critical' : 'warning';
    const subject = [isOfPayments ? 'write' : 'reads', isProbing(state) ? 'probation' : ''].join(' ');
    const name = `The ${listText(group.map(({ lane }) => lane))} ${group.length === 1 ? 'circuit' : 'circuits'} of ${environment}`;
    const verb = group.length === 1 ? 'is' : 'are';
    const found = { severity, environment, subject } as const;
    if (hold !== null) return [{ ...found, id: 'circuit-held', text: `${name} ${verb} ${holdText(first)}.` }];
    const text = `${name} ${verb} ${stateTexts[state] ?? state}: ${withoutStop(first.reason)}.${causeText(group)}`;
    return [{ ...found, id: 'circuit-open', text, sinceMs: openedAtMs(group) }];
  });
}

/** An open circuit is half-open again and again. */
const isProbing = (state: CircuitView['state']) => state === 'probation';

const stateTexts: Readonly<Partial<Record<CircuitView['state'], string>>> = {
  open: 'open',
  'half-open': 'open, and the gateway is probing the bank',
  probation: 'on probation, with one payment at a time until one succeeds',
};

const withoutStop = (text: string | null) => (text ?? 'the bank fails').replace(/\.$/, '');

function holdText({ hold, until, reason }: CircuitView): string {
  const effect = hold === 'open' ? 'open by an operator' : 'closed by an operator, regardless of failures,';
  const end = until === null ? '' : ` until ${clockTime(Date.parse(until))}`;
  return `held ${effect}${end}: ${withoutStop(reason)}`;
}

function firstCauseOf(group: readonly CircuitView[]) {
  return group
    .flatMap(({ cause }) => cause ?? [])
    .toSorted((one, other) => one.at.localeCompare(other.at))[0];
}

/** Of the call that failed first; `reason` may be that of a later failed probe. */
function causeText(group: readonly CircuitView[]): string {
  const cause = firstCauseOf(group);
  if (!cause) return '';
  return ` First, at ${clockTime(Date.parse(cause.at))}: ${withoutStop(cause.why)} (X-Request-ID ${cause.xRequestId}).`;
}

function openedAtMs(group: readonly CircuitView[]): number | undefined {
  const cause = firstCauseOf(group);
  return cause && Date.parse(cause.openedAt);
}

function tenantCircuits({ environment, lane, state, hold, tenants }: CircuitView): readonly Finding[] {
  if (hold !== null || state !== 'closed' || tenants.length === 0) return [];
  const shown = tenants.slice(0, 5).map(({ tenant }) => tenant);
  const more = tenants.length > shown.length ? [`${tenants.length - shown.length} more`] : [];
  const isOnProbation = tenants.map((tenant) => tenant.state === 'probation');
  const words = [isOnProbation.includes(false) && 'open', isOnProbation.includes(true) && 'on probation'];
  const text = `The ${lane} circuit of ${environment} is ${words.filter(Boolean).join(' or ')} for ${listText([...shown, ...more])}, closed for the others.`;
  return [{ id: 'circuit-open-for-tenant', severity: 'warning', environment, subject: lane, text }];
}

const minSilentWrites = 3;

function silence({ environment, silentWrites }: EnvironmentLimiterStats): readonly Finding[] {
  if (silentWrites < minSilentWrites) return [];
  const text = `The bank of ${environment} is silent: ${silentWrites} payments or authorisations have waited for its answer for 8 s or longer, and it has answered none in that time.`;
  return [{ id: 'bank-silent', severity: 'warning', environment, text }];
}

/** The rate recovers slowly: what is nearly the whole rate needs no attention. */
const noticedShare = 0.9;

function loweredRate(
  { environment, perSecond }: EnvironmentLimiterStats,
  { rateOf }: BankFacts,
): readonly Finding[] {
  const configured = rateOf(environment);
  if (configured === undefined || perSecond >= noticedShare * configured) return [];
  const text = `The bank has answered 429: ${environment} is called at ${perSecond.toFixed(1)} of ${configured}/s.`;
  return [{ id: 'rate-lowered', severity: 'warning', environment, text }];
}

const laneNames: Readonly<Record<Lane, string>> = {
  write: 'payments',
  read: 'reads',
  status: 'status reads',
};

function pauseOf({ environment }: EnvironmentLimiterStats, pause: Pause): Finding {
  const { lane, tenant, product, pausedMs } = pause;
  const calls = lane === undefined ? 'all calls' : laneNames[lane];
  const ofTenant = tenant === undefined ? '' : ` of ${tenant}`;
  const forProduct = product === undefined ? '' : ` for ${product}`;
  const seconds = Math.ceil(pausedMs / 1_000);
  return {
    id: 'bank-pauses',
    severity: 'warning',
    environment,
    subject: [calls, tenant ?? '', product ?? ''].join(' '),
    text: `The bank of ${environment} has asked for a pause: ${calls}${ofTenant}${forProduct} wait for another ${seconds} s.`,
  };
}

function queue({ environment, waiting, perSecond }: EnvironmentLimiterStats): readonly Finding[] {
  const calls = waiting.write + waiting.read + waiting.status;
  if (calls <= perSecond) return [];
  const payments = `${countOf(waiting.write, 'payment')} among them`;
  const text = `${countOf(calls, 'call')} to ${environment} wait, ${payments}: about ${Math.ceil(calls / perSecond)} s.`;
  return [{ id: 'calls-queue', severity: 'warning', environment, text }];
}

const tenantAtLimit = ({ environment }: EnvironmentLimiterStats, tenant: string): Finding => ({
  id: 'tenant-at-limit',
  severity: 'info',
  environment,
  subject: tenant,
  text: `Tenant ${tenant} uses all its concurrency slots of ${environment}.`,
});

const certificateNames: Readonly<Record<InstalledCertificate['use'], string>> = {
  qwac: 'QWAC',
  qseal: 'QSealC',
  listener: 'TLS certificate of the public listener',
  'admin-listener': 'TLS certificate of the admin listener',
  'notification-listener': 'TLS certificate of the listener for notifications of banks',
};

const warningDays = 30;
const criticalDays = 8;

function expiry({ environment, use, info }: InstalledCertificate, facts: BankFacts): readonly Finding[] {
  const { daysLeft, subject, notAfter } = certificateView(info, facts.nowMs);
  if (daysLeft > warningDays) return [];
  const name = `The ${certificateNames[use]}${environment && ` of ${environment}`} (${subject})`;
  const text =
    daysLeft < 0
      ? `${name} expired on ${notAfter}.`
      : `${name} expires in ${countOf(daysLeft, 'day')}, on ${notAfter}.`;
  const isSerious = environment === '' || isImportant(facts, environment);
  const severity = daysLeft < criticalDays && isSerious ? 'critical' : 'warning';
  return [{ id: 'certificate-expires', severity, environment: environment || undefined, subject: use, text }];
}
