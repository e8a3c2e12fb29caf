/** What the database says of payments and messages: what is in doubt, what is not delivered, and what the bank has changed. */

import type { InDoubtCount } from '../idempotency/in-doubt.ts';
import { countOf, type Finding, isImportant, listText, type Moment } from './finding.ts';

/** An endpoint that has not accepted its last messages. */
export interface FailingEndpoint {
  /** The name. */
  readonly tenant: string;
  /** The origin of its URL. */
  readonly endpoint: string;
  readonly messages: number;
  readonly sinceMs: number;
}

/** New deviations of the answers to one operation. */
export interface BankChange {
  readonly environment: string;
  readonly operation: string;
  readonly path: string;
  readonly rule: string;
  readonly changedAtMs: number;
}

export interface InternalErrors {
  readonly environment: string;
  readonly count: number;
  readonly lastRequestId: string;
}

export interface PaymentFacts extends Moment {
  /** With the names of the environments. */
  readonly doubts: readonly InDoubtCount[];
  readonly endpoints: readonly FailingEndpoint[];
  readonly deadMessages: number;
  readonly failingSubscriptions: number;
  readonly bankChanges: readonly BankChange[];
  readonly internalErrors: readonly InternalErrors[];
  /** Age of the oldest write that is neither answered nor in doubt. Milliseconds. */
  readonly oldestUnfinishedMs: number | undefined;
  /** Requests of the last minute, and those without a usable answer of the bank. */
  readonly requests: number;
  readonly failed: number;
}

export const findOfPayments = (facts: PaymentFacts): readonly Finding[] => [
  ...doubts(facts),
  ...unfinished(facts),
  ...failingEndpoints(facts),
  ...webhooks(facts),
  ...bankChanges(facts.bankChanges),
  ...facts.internalErrors.map((errors) => internalErrors(errors, facts)),
  ...failedRequests(facts),
];

/** Operations in words. Every initiation is a payment. */
const doubtNames: Readonly<Record<string, readonly [one: string, several: string]>> = {
  initiatePayment: ['payment', 'payments'],
  cancelPayment: ['cancellation', 'cancellations'],
};
const otherDoubt = ['authorisation', 'authorisations'] as const;

function doubts({ doubts: all, isProduction }: PaymentFacts): readonly Finding[] {
  const groups = Map.groupBy(all, ({ environment, isFirstFactor }) =>
    JSON.stringify([environment, isFirstFactor]),
  );
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (!first) return [];
    const { environment, isFirstFactor } = first;
    const byName = [...Map.groupBy(group, ({ operation }) => doubtNames[operation] ?? otherDoubt)];
    const parts = byName.map(([[one, several], counts]) => countOf(sumOf(counts, 'count'), one, several));
    const twice = sumOf(group, 'twice');
    const both = twice === 0 ? '' : ` ${twice} of them reached the bank twice.`;
    const what = isFirstFactor
      ? countOf(sumOf(group, 'count'), 'step of an authorisation is', 'steps of authorisations are')
      : `${listText(parts)} ${sumOf(group, 'count') === 1 ? 'is' : 'are'}`;
    const serious = isFirstFactor ? ('warning' as const) : ('critical' as const);
    return [
      {
        id: isFirstFactor ? ('authorisation-in-doubt' as const) : ('in-doubt' as const),
        severity: isProduction(environment) ? serious : ('info' as const),
        environment,
        text: `${what} in doubt in ${environment}: the bank may have executed ${sumOf(group, 'count') === 1 ? 'it' : 'them'}.${both}`,
        sinceMs: Math.min(...group.map(({ sinceMs }) => sinceMs)),
      },
    ];
  });
}

const sumOf = (all: readonly InDoubtCount[], member: 'count' | 'twice') =>
  all.reduce((total, one) => total + one[member], 0);

const unfinishedMs = 300_000;

function unfinished({ oldestUnfinishedMs = 0, nowMs }: PaymentFacts): readonly Finding[] {
  if (oldestUnfinishedMs < unfinishedMs) return [];
  const text = 'A write is neither answered nor in doubt: its outcome is not stored.';
  return [{ id: 'write-unfinished', severity: 'warning', text, sinceMs: nowMs - oldestUnfinishedMs }];
}

const failingMs = 600_000;

const failingEndpoints = ({ endpoints, nowMs }: PaymentFacts): readonly Finding[] =>
  endpoints
    .filter(({ sinceMs }) => nowMs - sinceMs >= failingMs)
    .map(({ tenant, endpoint, messages, sinceMs }) => ({
      id: 'webhook-endpoint-fails',
      severity: 'warning',
      subject: `${tenant} ${endpoint}`,
      text: `${endpoint} of ${tenant} accepts no messages: ${countOf(messages, 'message waits', 'messages wait')}.`,
      sinceMs,
    }));

function webhooks({ deadMessages, failingSubscriptions }: PaymentFacts): readonly Finding[] {
  const found: Finding[] = [];
  if (deadMessages > 0)
    found.push({
      id: 'webhooks-given-up',
      severity: 'warning',
      text: `${countOf(deadMessages, 'message of webhooks was', 'messages of webhooks were')} given up.`,
    });
  if (failingSubscriptions > 0)
    found.push({
      id: 'subscriptions-failing',
      severity: 'warning',
      text: `The status of ${countOf(failingSubscriptions, 'subscribed payment')} cannot be read, so ${failingSubscriptions === 1 ? 'its' : 'their'} messages are not sent.`,
    });
  return found;
}

/** One for all new deviations of an operation. */
function bankChanges(changes: readonly BankChange[]): readonly Finding[] {
  const groups = Map.groupBy(changes, ({ environment, operation }) => `${environment} ${operation}`);
  return [...groups.values()].flatMap((group) => {
    const [last] = group.toSorted((one, other) => other.changedAtMs - one.changedAtMs);
    if (!last) return [];
    const { environment, operation, path, rule, changedAtMs } = last;
    const which =
      group.length === 1
        ? `a new deviation: ${path} (${rule})`
        : `${group.length} new deviations, last ${path} (${rule})`;
    const text = `The bank of ${environment} has changed: its answers to ${operation} have ${which}.`;
    return [
      {
        id: 'bank-has-changed',
        severity: 'warning',
        environment,
        subject: operation,
        text,
        sinceMs: changedAtMs,
      },
    ];
  });
}

const internalErrors = (
  { environment, count, lastRequestId }: InternalErrors,
  facts: PaymentFacts,
): Finding => ({
  id: 'internal-errors',
  severity: isImportant(facts, environment) ? 'critical' : 'warning',
  environment: environment || undefined,
  text: `${countOf(count, 'request')} failed with an internal error of the gateway within 15 minutes, last X-Request-ID ${lastRequestId}.`,
});

const failedShare = 0.1;
const minFailed = 5;

function failedRequests({ requests, failed }: PaymentFacts): readonly Finding[] {
  if (failed < minFailed || failed < failedShare * requests) return [];
  const text = `${failed} of ${countOf(requests, 'request')} in the last minute had no usable answer of the bank, or 5xx.`;
  return [{ id: 'requests-fail', severity: 'warning', text }];
}
