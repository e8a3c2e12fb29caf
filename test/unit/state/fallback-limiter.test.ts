import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createFallbackLimiter } from '../../../src/state/fallback-limiter.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';
import type { TokenBuckets } from '../../../src/state/ports.ts';

const rate = { perSecond: 1, burst: 4 };

/** A limiter for one of two instances. */
function createLimiter(initialFill: 'full' | 'empty') {
  const world = { nowMs: 0, isDown: false, calls: 0, notifications: [] as boolean[] };
  const now = () => world.nowMs;
  const buckets = createMemoryTokenBuckets(now);
  const call = <Result>(operation: () => Promise<Result>) => {
    world.calls += 1;
    return world.isDown ? Promise.reject(stateUnavailable()) : operation();
  };
  const shared: TokenBuckets = {
    reserve: (...args) => call(() => buckets.reserve(...args)),
    take: (...args) => call(() => buckets.take(...args)),
  };
  const onFallback = (isLocal: boolean) => void world.notifications.push(isLocal);
  return {
    world,
    limiter: createFallbackLimiter(shared, { share: () => 0.5, initialFill, onFallback, now }),
  };
}

describe('the fallback limiter while the state is unavailable', () => {
  test('uses its share of the rate and of the burst', async () => {
    const { world, limiter } = createLimiter('full');
    world.isDown = true;
    const waits = [];
    for (let call = 0; call < 4; call++) waits.push(await limiter.reserve('bucket', rate, 60_000));
    assert.deepEqual(waits, [0, 0, 2_000, 4_000]);
    assert.deepEqual((await limiter.take('other', rate)).remaining, 1);
  });

  test('issues the first permit of an initially empty bucket after one interval', async () => {
    const { world, limiter } = createLimiter('empty');
    world.isDown = true;
    const waits = [];
    for (let call = 0; call < 3; call++) waits.push(await limiter.reserve('bucket', rate, 60_000));
    assert.deepEqual(waits, [2_000, 4_000, 6_000]);
    assert.equal((await limiter.take('other', rate)).taken, false);
  });

  test('starts an empty bucket empty for payments as well, if a read with a smaller burst comes first', async () => {
    const { world, limiter } = createLimiter('empty');
    world.isDown = true;
    const rateOfReads = { ...rate, burst: rate.burst / 2 };
    assert.equal(await limiter.reserve('bucket', rateOfReads, 0), undefined);
    assert.equal(await limiter.reserve('bucket', rate, 0), undefined);
    world.nowMs = 3_000;
    assert.equal(await limiter.reserve('bucket', rate, 0), 0, 'half a permit per second');
    assert.equal(await limiter.reserve('bucket', rate, 0), undefined);
  });

  test('tries the state once per second, and notifies once', async () => {
    const { world, limiter } = createLimiter('full');
    world.isDown = true;
    for (; world.nowMs < 3_000; world.nowMs += 100) await limiter.take('bucket', rate);
    assert.deepEqual([world.calls, world.notifications], [3, [true]]);
    world.isDown = false;
    await limiter.take('bucket', rate);
    assert.deepEqual(world.notifications, [true, false]);
  });

  test('rethrows any other error', async () => {
    const fails = () => Promise.reject(new TypeError('a bug'));
    const limiter = createFallbackLimiter(
      { reserve: fails, take: fails },
      { share: () => 1, initialFill: 'full' },
    );
    await assert.rejects(limiter.reserve('bucket', rate, 0), TypeError);
  });
});

describe('the fallback limiter after an outage', () => {
  test('takes permits that were recently used locally from the shared bucket', async () => {
    const { world, limiter } = createLimiter('empty');
    world.isDown = true;
    assert.equal(await limiter.reserve('bucket', rate, 0), undefined); // the local bucket starts to fill
    world.nowMs = 10_000;
    assert.equal(await limiter.reserve('bucket', rate, 0), 0); // the state is tried again, and fails
    world.nowMs = 10_900;
    assert.deepEqual(
      [await limiter.reserve('bucket', rate, 0), await limiter.reserve('bucket', rate, 0)],
      [0, undefined],
    );
    world.isDown = false;
    world.nowMs = 11_000;
    const waits = await Promise.all([1, 2, 3].map(() => limiter.reserve('bucket', rate, 60_000)));
    assert.deepEqual(waits, [0, 0, 500]); // one and a half of four permits are missing
  });

  test('does not take permits that the local bucket has refilled, or that it never issued', async () => {
    const { world, limiter } = createLimiter('empty');
    world.isDown = true;
    await limiter.reserve('bucket', rate, 2_000);
    await limiter.reserve('other', rate, 0);
    world.isDown = false;
    world.nowMs = 10_000;
    for (const bucket of ['bucket', 'other']) assert.equal((await limiter.take(bucket, rate)).remaining, 3);
  });
});
