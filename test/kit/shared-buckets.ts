/** Token buckets of several simulated instances: the same arithmetic as the Redis script, on a manual clock. */

import { permitLeaseMs, type SharedTokenBuckets } from '../../src/state/ports.ts';
import { aheadMarginMs, reservePermit, takeResultOf } from '../../src/state/token-bucket.ts';

interface SharedBucket {
  arrivalMs: number;
  readonly leases: Map<string, { readonly count: number; readonly endsAtMs: number }>;
}

export function createSharedBuckets(now: () => number): SharedTokenBuckets {
  const buckets = new Map<string, SharedBucket>();
  const bucketOf = (name: string): SharedBucket => {
    const bucket = buckets.get(name) ?? { arrivalMs: Number.NEGATIVE_INFINITY, leases: new Map() };
    buckets.set(name, bucket);
    return bucket;
  };
  return {
    isShared: true,
    async reserve(name, rate, maxWaitMs) {
      const bucket = bucketOf(name);
      const permit = reservePermit(bucket.arrivalMs, now(), rate, maxWaitMs);
      if (permit) bucket.arrivalMs = permit.theoreticalArrivalMs;
      return permit?.waitMs;
    },
    async take(name, rate) {
      const bucket = bucketOf(name);
      const permit = reservePermit(bucket.arrivalMs, now(), rate, 0);
      if (permit) bucket.arrivalMs = permit.theoreticalArrivalMs;
      return takeResultOf(permit !== undefined, Math.max(0, bucket.arrivalMs - now()), rate);
    },
    async lease(name, { perSecond, burst, longestAheadMs }, { wanted, maxWaitMs, lease }) {
      const bucket = bucketOf(name);
      const nowMs = now();
      const intervalMs = 1_000 / perSecond;
      const toleranceMs = Math.max(0, burst - 1) * intervalMs;
      const maxAheadMs = (longestAheadMs ?? maxWaitMs + toleranceMs) + intervalMs + aheadMarginMs;
      if (bucket.arrivalMs - nowMs > maxAheadMs) bucket.arrivalMs = nowMs + toleranceMs;
      for (const [id, { endsAtMs }] of bucket.leases)
        if (endsAtMs <= nowMs || endsAtMs > nowMs + permitLeaseMs) bucket.leases.delete(id);
      const leased = [...bucket.leases.values()].reduce((sum, { count }) => sum + count, 0);
      const known = lease ? (bucket.leases.get(lease.id)?.count ?? 0) : 0;
      const returned = lease ? Math.min(lease.returned, Math.max(0, known - lease.held)) : 0;
      const arrivalMs = Math.max(bucket.arrivalMs, nowMs + leased * intervalMs) - returned * intervalMs;
      const waitMs = Math.max(0, arrivalMs - toleranceMs - nowMs);
      const available = Math.floor((toleranceMs - (arrivalMs - nowMs)) / intervalMs + 1 + 1e-6);
      const reserved = wanted > 0 && waitMs <= maxWaitMs ? 1 : 0;
      const granted = waitMs === 0 ? Math.max(0, Math.min(wanted, available)) : reserved;
      bucket.arrivalMs = arrivalMs + granted * intervalMs;
      if (lease) {
        const count = lease.held + (waitMs === 0 ? Math.max(0, granted - lease.immediate) : 0);
        bucket.leases.delete(lease.id);
        if (count > 0) bucket.leases.set(lease.id, { count, endsAtMs: nowMs + permitLeaseMs });
      }
      return { granted, waitMs, after: String(bucket.arrivalMs) };
    },
    async giveBack(name, { perSecond }, after) {
      const bucket = bucketOf(name);
      if (String(bucket.arrivalMs) !== after) return false;
      bucket.arrivalMs -= 1_000 / perSecond;
      return true;
    },
  };
}
