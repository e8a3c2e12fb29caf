/**
 * The reads for one subscription: the status of its payment, and of the authorisations that run.
 *
 * A payment that is also waited for is polled once for both (poll-payment.ts): the subscription uses what was read for the waiting reads.
 * It takes the lease after the permit, not before it: its patient polls do not hold up those that are urgent.
 */

import type { Operation } from '../pis/operations.ts';
import type { Client } from '../request/messages.ts';
import { authorisationIdsIn } from '../request/read-content.ts';
import type { PaymentOfTenant, RecordedStatus, ShownStatus } from '../request/statuses.ts';
import { type Authorisation, scaStatusOf } from './authorisations.ts';
import type { PollBudget } from './poll-budget.ts';
import { keptMsOf, type PaymentPolls } from './poll-payment.ts';
import { isInstantProduct } from './poll-schedule.ts';
import type { PollTarget } from './poll-target.ts';
import type { PollResult, ResourceReads, StatusReads } from './status-reads.ts';
import type { Subscription } from './subscription.ts';

/** The result of reading a status for a subscription. */
export type StatusReadResult =
  | ({ readonly kind: 'status' } & ShownStatus)
  /** It is known that the status has not changed, or another poller is reading it. Milliseconds. */
  | { readonly kind: 'known'; readonly dueInMs: number }
  /** The bank or the gateway does not accept the credentials for this payment. */
  | { readonly kind: 'refused'; readonly why?: string | undefined }
  | { readonly kind: 'failed'; readonly why?: string | undefined; readonly retryAfterMs?: number | undefined }
  /** Nothing was asked: this instance is busy, it stops, or the shared state is unavailable. */
  | { readonly kind: 'dropped' };

/** The result of a read for an authorisation. */
export type ScaRead =
  | { readonly kind: 'status'; readonly scaStatus: string }
  | { readonly kind: 'listed'; readonly ids: readonly string[] }
  /** The bank does not know it, or the settings do not accept its path. */
  | { readonly kind: 'gone' }
  | Exclude<StatusReadResult, { readonly kind: 'status' | 'known' }>;

/** What the settings in effect say about the reads of a subscription. */
export interface ReadableSubscription {
  readonly client: Client;
  /** The read of the status. */
  readonly operation: Operation;
  /** The name of the environment. */
  readonly environment: string;
  readonly payment: PaymentOfTenant;
}

export interface SubscriptionReader {
  /** Both never reject. @param signal aborts the wait for a permit */
  readStatus(subscription: Subscription, signal: AbortSignal): Promise<StatusReadResult>;
  /** Reads an authorisation, or the list of them if it has no id. */
  readAuthorisation(
    subscription: Subscription,
    authorisation: Authorisation,
    signal: AbortSignal,
  ): Promise<ScaRead>;
}

interface SubscriptionReaderDependencies {
  readonly polls: PaymentPolls;
  readonly reads: Pick<StatusReads, 'current'> & ResourceReads;
  readonly budget: Pick<PollBudget, 'take' | 'giveBack'>;
  /** `undefined` if the settings do not allow to read it. */
  readonly readableOf: (subscription: Subscription) => ReadableSubscription | undefined;
  /** The read of an authorisation, or of the list; `undefined` if the settings do not accept its path. */
  readonly authorisationReadOf: (
    subscription: Subscription,
    authorisation: Pick<Authorisation, 'type' | 'id'>,
  ) => Operation | undefined;
  /** From one read to the next; `undefined` if the status does not change any more. @param readAtMs milliseconds since 1970 */
  readonly intervalMs: (subscription: Subscription, readAtMs: number) => number | undefined;
  /** The clock of the status cache. */
  readonly now: () => number;
}

/** How soon to look again while another poller reads the status. Milliseconds. */
const otherPollerMs = 2_000;
/** A read that is later than now by more than this has the time of an instance whose clock is wrong. Milliseconds. */
const maxClockSkewMs = 1_000;

export function createSubscriptionReader({
  polls,
  reads,
  budget,
  readableOf,
  authorisationReadOf,
  intervalMs,
  now,
}: SubscriptionReaderDependencies): SubscriptionReader {
  const recordedOf = async (paymentKey: string) => reads.current?.statuses.recorded(paymentKey);

  /** Milliseconds until the status is due; 0 or less if it is to be read now. */
  function dueInMs(subscription: Subscription, { hash, readAtMs }: RecordedStatus): number {
    const { status } = subscription;
    if (hash === undefined || hash !== status?.hash) return 0;
    if (readAtMs === 0 || readAtMs > now() + maxClockSkewMs) return 0;
    const interval = intervalMs(withoutFailures(subscription), readAtMs);
    return interval === undefined ? 0 : readAtMs + interval - now();
  }

  const takePermit = ({ environment, payment }: ReadableSubscription, signal: AbortSignal) =>
    budget.take({ environment, tenantId: payment.tenantId, urgency: 'subscription' }, () => !signal.aborted);

  async function readStatus(subscription: Subscription, signal: AbortSignal): Promise<StatusReadResult> {
    const readable = readableOf(subscription);
    if (!readable) return { kind: 'refused', why: 'the settings do not allow the read' };
    const { environment, payment } = readable;
    const before = await recordedOf(payment.paymentKey);
    if (!before) return { kind: 'dropped' };
    const leftMs = dueInMs(subscription, before);
    if (leftMs > 0) return { kind: 'known', dueInMs: leftMs };
    if (!(await takePermit(readable, signal))) return { kind: 'dropped' };

    // A TPP, or the poller of the waiting reads, may have read it since.
    const recorded = await recordedOf(payment.paymentKey);
    const leftNowMs = recorded ? dueInMs(subscription, recorded) : 0;
    const lease =
      recorded && leftNowMs <= 0
        ? await polls.takeLease(payment, recorded).catch(() => 'unavailable' as const)
        : undefined;
    if (!recorded || !lease || lease === 'unavailable') {
      budget.giveBack(environment);
      if (!recorded || lease === 'unavailable') return { kind: 'dropped' };
      const interval = intervalMs(subscription, now()) ?? otherPollerMs;
      return { kind: 'known', dueInMs: leftNowMs > 0 ? leftNowMs : Math.min(interval, otherPollerMs) };
    }
    const result = await polls.read({
      lease,
      target: targetOf(subscription, readable),
      recorded,
      isKnown: (hash) => hash === subscription.status?.hash,
      maxCachedAgeMs: maxCachedAgeMs(subscription),
      intervalMs: (read) => nextIntervalMs(subscription, read),
    });
    return statusReadOf(result);
  }

  /** The subscription does not contain yet what was read: a status that it does not know is read again soon. */
  function nextIntervalMs(subscription: Subscription, read: PollResult): number {
    if (read.kind !== 'status') return intervalMs(subscription, now()) ?? otherPollerMs;
    if (read.shown.hash !== subscription.status?.hash) return otherPollerMs;
    return intervalMs(withoutFailures(subscription), now()) ?? otherPollerMs;
  }

  /** The cache may keep a status for longer than an instant payment is left unread. */
  function maxCachedAgeMs(subscription: Subscription): number | undefined {
    if (!isInstantProduct(subscription.paymentProduct)) return undefined;
    const interval = intervalMs(subscription, now());
    return interval === undefined ? undefined : keptMsOf(interval);
  }

  async function readAuthorisation(
    subscription: Subscription,
    authorisation: Authorisation,
    signal: AbortSignal,
  ): Promise<ScaRead> {
    const readable = readableOf(subscription);
    const operation = authorisationReadOf(subscription, authorisation);
    if (!readable || !operation) return { kind: 'gone' };
    if (!(await takePermit(readable, signal))) return { kind: 'dropped' };
    const result = await reads.readJson(targetOf(subscription, { ...readable, operation }));
    if (result.kind !== 'json') return result.kind === 'rejected' ? { kind: 'gone' } : result;
    if (authorisation.id === undefined) return { kind: 'listed', ids: authorisationIdsIn(result.json) };
    const scaStatus = scaStatusOf(result.json);
    return scaStatus === undefined ? { kind: 'failed' } : { kind: 'status', scaStatus };
  }

  return { readStatus, readAuthorisation };
}

function withoutFailures(subscription: Subscription): Subscription {
  const { failedReads: _, ...unfailed } = subscription;
  return unfailed;
}

/** Authorisations are polled in the status lane as well, so that payments and other reads come first. */
const targetOf = (
  { headers }: Subscription,
  { client, operation, environment, payment }: ReadableSubscription,
): PollTarget => ({ ...payment, client, operation: { ...operation, lane: 'status' }, environment, headers });

function statusReadOf(result: PollResult): StatusReadResult {
  switch (result.kind) {
    case 'status':
      return { kind: 'status', ...result.shown };
    case 'rejected':
      return { kind: 'failed', why: result.why };
    case 'refused':
    case 'failed':
      return result;
  }
}
