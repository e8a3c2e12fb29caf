import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';
import { createOptimisticLimiter } from '../../../src/state/optimistic-limiter.ts';

const rate = { perSecond: 10, burst: 4 };

/** A limiter for one of two instances; the test sets the response time of the shared bucket, and whether it is down. */
function createLimiter() {
  const world = { nowMs: 0, responseMs: 0, isDown: false, reserved: 0 };
  const now = () => world.nowMs;
  const buckets = createMemoryTokenBuckets(now);
  const answer = Promise.withResolvers<void>();
  const shared = {
    ...buckets,
    async reserve(...args: Parameters<typeof buckets.reserve>) {
      if (world.isDown) throw stateUnavailable();
      world.reserved += 1;
      const waitMs = await buckets.reserve(...args);
      if (world.responseMs > 100) await answer.promise;
      return waitMs;
    },
  };
  const limiter = createOptimisticLimiter(shared, () => 0.5, {
    now,
    stopwatch: () => () => world.responseMs,
  });
  return { world, answer, reserve: (maxWaitMs = 60_000) => limiter.reserve('bucket', rate, maxWaitMs) };
}

/** A limiter that has found the state slow, so long ago that it may take a permit of its own. */
async function createSlowLimiter() {
  const limiter = createLimiter();
  limiter.world.responseMs = 30;
  await limiter.reserve();
  limiter.world.nowMs = 10_000;
  return limiter;
}

describe('the optimistic limiter', () => {
  test('does not wait for a slow bucket, but reserves the permit in it', async () => {
    const { world, answer, reserve } = await createSlowLimiter();
    world.responseMs = 1_000;
    assert.equal(await reserve(), 0, 'the bucket has not answered yet');
    assert.equal(world.reserved, 2);
    answer.resolve();
  });

  test('waits for a slow bucket if calls exceed the share of this instance', async () => {
    const { world, reserve } = await createSlowLimiter();
    const waits = [];
    for (let call = 0; call < 7; call++) waits.push(await reserve());
    assert.deepEqual(waits, [0, 0, 0, 0, 100, 200, 300], 'the burst, then one every 100 ms');
    world.nowMs += 199;
    assert.equal(await reserve(), 201, 'at half the rate, no own permit is available yet');
    world.nowMs += 1;
    assert.equal(await reserve(), 0, 'now there is one');
    assert.equal(await reserve(), 400, 'it was reserved although the bucket was behind');
  });

  test('waits for the bucket again once it answers quickly', async () => {
    const { world, reserve } = await createSlowLimiter();
    world.responseMs = 0;
    for (let call = 0; call < 7; call++) await reserve();
    world.nowMs += 200;
    assert.equal(await reserve(), 200, 'although an own permit is available');
  });

  test('throws STATE_UNAVAILABLE at the second call after the state became unavailable', async () => {
    const { world, reserve } = await createSlowLimiter();
    world.isDown = true;
    assert.equal(await reserve(), 0);
    world.nowMs += 10_000;
    await assert.rejects(reserve(), { code: 'STATE_UNAVAILABLE' });
  });
});
