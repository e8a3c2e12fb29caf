/**
 * Bounds the cost of look-ups: a tenant has one at a time and a rate, and an instance reads for one look-up at a time, in the order
 * of their arrival. As each tenant waits with one look-up at most, none of them delays the others for long.
 */

import { GatewayError, retryLater } from '../request/errors.ts';
import type { BucketRate, TakeResult } from '../state/ports.ts';

export interface LookUpLimits {
  /**
   * Runs a look-up. After the deadline it rejects, and the look-up still counts until it has ended.
   *
   * @param tenantId the identity of the tenant
   * @throws GatewayError QUOTA_EXCEEDED with the seconds to wait; STATE_UNAVAILABLE at the deadline
   */
  run<Result>(tenantId: string, lookUp: () => Promise<Result>): Promise<Result>;
}

interface LookUpLimitsDependencies {
  /** Takes a permit from a token bucket that all instances share. */
  readonly take: (bucket: string, rate: BucketRate) => TakeResult | Promise<TakeResult>;
  /** Milliseconds. */
  readonly deadlineMs?: number;
}

/** Of one tenant, on all instances together. */
const lookUpRate: BucketRate = { perSecond: 1, burst: 10 };
const bucketOf = (tenantId: string) => `bucket:look-up:${tenantId}`;
const defaultDeadlineMs = 10_000;
/** `Retry-After` for a tenant whose other look-up runs. Milliseconds. */
const retryAfterMs = 1_000;

export function createLookUpLimits({
  take,
  deadlineMs = defaultDeadlineMs,
}: LookUpLimitsDependencies): LookUpLimits {
  /** The tenants whose look-up runs or waits: at most all configured ones. */
  const busyTenants = new Set<string>();
  /** Resolves when the last look-up of this instance has ended. */
  let last: Promise<unknown> = Promise.resolve();

  async function start<Result>(
    tenantId: string,
    lookUp: () => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    const { taken, nextPermitMs } = await take(bucketOf(tenantId), lookUpRate);
    if (!taken) throw retryLater(nextPermitMs, 'QUOTA_EXCEEDED', 'The limit of look-ups is exhausted');
    const result = last.then(() => {
      if (signal.aborted) throw tooLate();
      return lookUp();
    });
    last = result.catch(() => {});
    return result;
  }

  return {
    run(tenantId, lookUp) {
      if (busyTenants.has(tenantId))
        return Promise.reject(retryLater(retryAfterMs, 'QUOTA_EXCEEDED', 'Another look-up is in progress'));
      busyTenants.add(tenantId);
      const deadline = new AbortController();
      const result = start(tenantId, lookUp, deadline.signal).finally(() => busyTenants.delete(tenantId));
      return beforeDeadline(result, deadline, deadlineMs);
    },
  };
}

function beforeDeadline<Result>(
  result: Promise<Result>,
  deadline: AbortController,
  deadlineMs: number,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      deadline.abort();
      reject(tooLate());
    }, deadlineMs);
    result.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

const tooLate = () =>
  new GatewayError('STATE_UNAVAILABLE', 'The records of requests could not be read in time. Try again.');
