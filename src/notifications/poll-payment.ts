/**
 * One poll of the status of a payment, for all that wait for it: the waiting reads, the streams and the subscription of a tenant. Over all
 * instances, one of them polls at a time, under a lease and with the credentials that it has.
 */

import { randomUUID } from 'node:crypto';
import type { PaymentOfTenant, RecordedStatus, StatusEvents } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { PollTarget } from './poll-target.ts';
import type { PollResult, StatusReads } from './status-reads.ts';

export interface PaymentPolls {
  /**
   * Takes the lease, and renews it until it is kept or released.
   *
   * @param recorded the lease has another name after each change and write: a poll is then due although the interval has not passed
   * @returns `undefined` if another instance holds it
   * @throws GatewayError STATE_UNAVAILABLE
   */
  takeLease(
    payment: PaymentOfTenant,
    recorded: Pick<RecordedStatus, 'generation'>,
  ): Promise<PollLease | undefined>;
  /** Reads the status, and ends the lease. Never rejects. */
  read(poll: LeasedPoll): Promise<PollResult>;
}

export interface PollLease {
  /** Nobody else polls until then. Never fails. */
  keep(ms: number): Promise<void>;
  /** Another instance may poll at once. Never fails. */
  release(): Promise<void>;
}

export interface LeasedPoll {
  readonly lease: PollLease;
  readonly target: PollTarget;
  /** What was recorded of the payment before. */
  readonly recorded: RecordedStatus;
  /** Whether all that wait on this instance know the status with this hash. */
  readonly isKnown: (hash: string) => boolean;
  /** An older cached status does not answer the poll; by default any that is fresh does. Milliseconds. */
  readonly maxCachedAgeMs: number | undefined;
  /** From this poll to the next one, for whose time nobody else needs to poll. Milliseconds. */
  readonly intervalMs: (result: PollResult) => number;
}

export type PollOutcome = 'changed' | 'unchanged' | 'refused' | 'failed' | 'dropped';

interface PaymentPollDependencies {
  readonly keyValues: KeyValues;
  readonly events: Pick<StatusEvents, 'publish'>;
  readonly reads: Pick<StatusReads, 'read'>;
  readonly metrics: Pick<Metrics, 'increment'>;
}

/** The lease is kept for this part of the interval to the next poll: the clocks of the instances differ. */
const keptShare = 0.9;
/** After a failure, which may concern only this instance, the lease is kept for no longer than this. Milliseconds. */
export const maxKeptAfterFailureMs = 5_000;
/** The lease of an instance that dies expires after this time. Milliseconds. */
const leaseMs = 5_000;

/** How long to keep a lease after a poll, and a cached status before the next one. Milliseconds. */
export const keptMsOf = (intervalMs: number): number => Math.max(1, Math.floor(intervalMs * keptShare));

/** Whether the next poll needs other credentials, or a listener must read the status with all of its fields. */
export const isRefused = ({ kind }: PollResult): boolean => kind === 'refused' || kind === 'rejected';

export function createPaymentPolls({
  keyValues,
  events,
  reads,
  metrics,
}: PaymentPollDependencies): PaymentPolls {
  return {
    async takeLease({ tenantId, paymentKey }, { generation }) {
      const name = `${paymentKey}:poll:${tenantId}:${generation}`;
      const holder = randomUUID();
      if (!(await keyValues.writeIfAbsent(name, holder, leaseMs))) return undefined;
      const renew = (ms: number) => keyValues.replace(name, holder, holder, ms).then(ignore, ignore);
      const renewal = setInterval(renew, leaseMs / 3, leaseMs);
      renewal.unref();
      return {
        keep(ms) {
          clearInterval(renewal);
          return renew(ms);
        },
        release() {
          clearInterval(renewal);
          return keyValues.removeIf(name, holder).then(ignore, ignore);
        },
      };
    },

    async read({ lease, target, recorded, isKnown, maxCachedAgeMs, intervalMs }) {
      const result = await reads.read(target, maxCachedAgeMs);
      const outcome = outcomeOf(result, isKnown);
      const { environment, tenantId, paymentKey } = target;
      metrics.increment('penstock_polls_total', { environment, outcome });
      const longestMs = result.kind === 'status' ? Number.POSITIVE_INFINITY : maxKeptAfterFailureMs;
      if (isRefused(result))
        await lease.release(); // another instance may have other credentials
      else await lease.keep(keptMsOf(Math.min(intervalMs(result), longestMs)));
      // The cache publishes a change only if it knew the status before.
      if (outcome === 'changed' && recorded.hash === undefined)
        events.publish({ what: 'changed', tenantId, paymentKey });
      return result;
    },
  };
}

function outcomeOf(result: PollResult, isKnown: LeasedPoll['isKnown']): PollOutcome {
  if (isRefused(result)) return 'refused';
  if (result.kind !== 'status') return 'failed';
  return isKnown(result.shown.hash) ? 'unchanged' : 'changed';
}

function ignore(): void {}
