/** Token buckets in a real Redis, by the script of the gateway, on a manual clock. */

import type { Redis } from 'ioredis';
import {
  type BucketRate,
  type PermitRequest,
  permitLeaseMs,
  type SharedTokenBuckets,
} from '../../src/state/ports.ts';
import { scriptWithClock } from '../../src/state/redis-scripts.ts';
import { takeResultOf } from '../../src/state/token-bucket.ts';

export interface ScriptedBuckets extends SharedTokenBuckets {
  /** Whether Redis has answered everything. */
  isIdle(): boolean;
  /** The wait and how far the arrival time lies ahead, as the script returns them. */
  reserveExactly(bucket: string, rate: BucketRate, maxWaitMs: number): Promise<readonly [string, string]>;
}

/** The time is the last argument of the script. */
const script = scriptWithClock('return tonumber(ARGV[#ARGV])');

/**
 * @param now     milliseconds on the manual clock
 * @param expires whether Redis removes the keys, which it does by its own clock
 */
export function createScriptedBuckets(client: Redis, now: () => number, expires = false): ScriptedBuckets {
  let pending = 0;

  async function execute(name: string, keys: readonly string[], args: readonly (string | number)[]) {
    pending += 1;
    try {
      const transaction = client.multi();
      transaction.eval(script, keys.length, ...keys, 1, name, args.length, ...args, now());
      if (!expires) for (const key of keys) transaction.persist(key);
      const [[error, results] = []] = (await transaction.exec()) ?? [];
      if (error) throw error;
      const [result] = results as [unknown]; // the script returns one result for each command
      if (result instanceof Error) throw result;
      return result;
    } finally {
      pending -= 1;
    }
  }

  const reserveExactly = async (bucket: string, rate: BucketRate, maxWaitMs: number) => {
    const { perSecond, burst, longestAheadMs = '' } = rate;
    return (await execute('reservePermit', [bucket], [perSecond, burst, maxWaitMs, longestAheadMs])) as [
      string,
      string,
    ];
  };

  return {
    isShared: true,
    isIdle: () => pending === 0,
    reserveExactly,
    async reserve(bucket, rate, maxWaitMs) {
      const waitMs = Number((await reserveExactly(bucket, rate, maxWaitMs))[0]);
      return waitMs > maxWaitMs ? undefined : waitMs;
    },
    async take(bucket, rate) {
      const [waitMs, aheadMs] = await reserveExactly(bucket, rate, 0);
      return takeResultOf(Number(waitMs) <= 0, Number(aheadMs), rate);
    },
    async lease(bucket, rate, { wanted, maxWaitMs, lease }: PermitRequest) {
      const { perSecond, burst, longestAheadMs = '' } = rate;
      const leaseArgs = lease ? [lease.id, lease.held, lease.returned, lease.immediate] : [];
      const args = [2, perSecond, burst, maxWaitMs, longestAheadMs, wanted, permitLeaseMs, ...leaseArgs];
      const keys = [bucket, leasesOf(bucket)];
      const [granted, waitMs, after] = (await execute('leasePermits', keys, args)) as [
        number,
        string,
        string,
      ];
      return { granted, waitMs: Number(waitMs), after };
    },
    giveBack: async (bucket, { perSecond }, after) =>
      (await execute('returnPermit', [bucket], [perSecond, after])) === 1,
  };
}

/** The second key of a bucket. */
export const leasesOf = (bucket: string): string => `{${bucket}}:leases`;
