/**
 * Five instances on one Redis: the rate limits their sum, payments of any instance go before polls of another, and clients never
 * exceed their quota. Redis runs the script of the gateway on the simulated clock of the test, so that every call is counted.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import { createQuotaCheck, createTakeQuota } from '../../src/http/quota.ts';
import type { Lane } from '../../src/pis/operations.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { createScriptedBuckets, leasesOf, type ScriptedBuckets } from '../kit/scripted-buckets.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { startLimiters, worstExcess } from '../unit/upstream/shaping/rate-limiter-fixture.ts';

const instances = 5;
const life = scopeOfAllTests();
const client = new Redis(skipWithoutRedis ? '' : await sharedRedisUrl(life), { lazyConnect: true });
life.after(() => client.disconnect());

describe('five instances on one Redis', { skip: skipWithoutRedis }, () => {
  for (const [perSecond, burst, longestLeaseMs] of [
    [2, 1, 0],
    [2, 4, 0],
    [10, 1, 0],
    [10, 5, 0],
    [50, 1, 0],
    [50, 10, 0],
    [200, 20, 200], // the only rate at which five instances lease blocks
  ] as const)
    test(`send no poll while a payment of another instance waits, and use all of ${perSecond}/s with a burst of ${burst}`, async (t) => {
      const { flood, sentIn, time } = await startFlood(t, perSecond, burst);
      const spanMs = 20_000 / perSecond; // twenty permits
      const polls = flood('status', [0]);
      await time.pass(spanMs);
      assert.ok(sentIn('status').length >= 15, `${sentIn('status').length} polls`);

      const payments = flood('write', [1, 2, 3, 4]);
      await time.pass(spanMs);
      payments.stop();
      const paidAtMs = time.now();
      assert.ok(sentIn('write').length >= 19, `${sentIn('write').length} payments`);
      await time.pass(2 * spanMs + (burst * 1_000) / perSecond); // the last payments are sent first
      polls.stop();
      assert.ok(
        sentIn('status').filter(({ atMs }) => atMs > paidAtMs).length >= 10,
        `${sentIn('status').filter(({ atMs }) => atMs > paidAtMs).length} polls are sent again`,
      );

      for (const { atMs: polledAtMs } of sentIn('status')) {
        const overtaken = sentIn('write').filter(
          ({ atMs, waitedMs }) => atMs - waitedMs < polledAtMs - longestLeaseMs && atMs > polledAtMs,
        );
        assert.equal(overtaken.length, 0, `a poll was sent before ${overtaken.length} payments`);
      }
      const all = sentIn().map(({ atMs }) => atMs);
      // A permit is used at the next whole millisecond.
      assert.ok(worstExcess(all, perSecond, burst) <= perSecond / 1_000 + 1e-6, 'rate and burst are kept');
    });

  test('issue no permit at once after a leased one that was used late', async (t) => {
    let nowMs = 0;
    const buckets = await startBuckets(t, () => nowMs);
    const lease = (wanted: number, held: number) => {
      const request = { wanted, maxWaitMs: 0, lease: { id: 'one', held, returned: 0, immediate: 0 } };
      return buckets.lease('bucket', { perSecond: 50, burst: 1 }, request);
    };
    assert.equal((await lease(1, 0)).granted, 1);
    nowMs = 100;
    await lease(0, 1);
    nowMs = 199; // the permit is used now, together with the bucket's next one if that is granted
    const { granted, waitMs } = await lease(1, 0);
    assert.deepEqual([granted, waitMs], [0, 20]);
    nowMs = 219;
    assert.equal((await lease(1, 0)).granted, 1);
  });

  test('admit exactly the quota of a client, and refuse nothing while a permit is left', async (t) => {
    let nowMs = 0;
    const buckets = await startBuckets(t, () => nowMs);
    const quota = { rate: 2, burst: 7 };
    const checks = Array.from({ length: instances }, () =>
      createQuotaCheck(
        [{ name: 'shop', quota }],
        createTakeQuota(buckets, () => 1),
      ),
    );
    let free = quota.burst;
    for (const laterMs of [0, 0, 400, 100, 500, 0, 2_000, 60_000]) {
      nowMs += laterMs;
      free = Math.min(quota.burst, free + (quota.rate * laterMs) / 1_000);
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const fields = new Map<string, string>();
          const shop = { name: 'shop', tenant: 'shop', environments: ['sandbox'] };
          const pending = checks[index % instances]?.(shop, ([name, value]) => fields.set(name, value));
          const isAdmitted = await pending?.result.then(
            () => true,
            () => false,
          );
          return { isAdmitted, remaining: Number(/r=(\d+)/.exec(fields.get('RateLimit') ?? '')?.[1]) };
        }),
      );
      const admitted = outcomes.filter(({ isAdmitted }) => isAdmitted).map(({ remaining }) => remaining);
      // Each response shows the true rest, and no request is refused while there is one.
      const expected = Array.from({ length: Math.floor(free + 1e-6) }, (_, index) => index);
      assert.deepEqual(
        admitted.toSorted((one, other) => one - other),
        expected,
        `at ${nowMs} ms`,
      );
      assert.ok(outcomes.every(({ isAdmitted, remaining }) => isAdmitted || remaining === 0));
      free -= admitted.length;
    }
  });
});

/** The rate limiters of the instances, with calls that wait for months. */
async function startFlood(t: TestContext, perSecond: number, burst: number) {
  const buckets = await startBuckets(t, () => Date.now());
  const maxWait = { write: 1e9, read: 1e9, status: 1e9 };
  const settings = { rate: perSecond, burst, maxWait, expectedInstances: instances };
  const options = { instances, settings, latencyMs: 5, bucketsOf: () => buckets, isIdle: buckets.isIdle };
  const { time, sent, call } = startLimiters(t, options);
  return {
    time,
    sentIn: (lane?: Lane) => sent.filter((one) => lane === undefined || one.lane === lane),
    /** Keeps so many calls of each of these instances waiting. */
    flood(lane: Lane, limiters: readonly number[], width = 5) {
      let isOver = false;
      const next = async (limiter: number): Promise<void> => {
        await call({ lane, limiter, deadlineMs: 1e9 });
        if (!isOver) await next(limiter);
      };
      for (const limiter of limiters) for (let one = 0; one < width; one++) void next(limiter);
      return {
        stop() {
          isOver = true;
        },
      };
    },
  };
}

/** Buckets of this test alone. */
async function startBuckets(t: TestContext, now: () => number) {
  if (client.status === 'wait') await client.connect();
  const buckets = createScriptedBuckets(client, now);
  const prefix = `test-${randomUUID()}:`;
  const names = new Set<string>();
  const own = (bucket: string) => {
    names.add(prefix + bucket);
    return prefix + bucket;
  };
  t.after(() => client.del([...names].flatMap((name) => [name, leasesOf(name)])));
  return {
    ...buckets,
    reserve: (bucket, ...rest) => buckets.reserve(own(bucket), ...rest),
    take: (bucket, ...rest) => buckets.take(own(bucket), ...rest),
    lease: (bucket, ...rest) => buckets.lease(own(bucket), ...rest),
    giveBack: (bucket, ...rest) => buckets.giveBack(own(bucket), ...rest),
  } satisfies ScriptedBuckets;
}
