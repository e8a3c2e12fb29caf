import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';
import { createOptimisticLimiter } from '../../../src/state/optimistic-limiter.ts';

const rate = { perSecond: 10, burst: 4 };

/** Two instances expected; how long the shared bucket takes, or that it is gone, is set by the test. */
function prompt() {
  const world = { nowMs: 0, slowMs: 0, gone: false, booked: 0 };
  const now = () => world.nowMs;
  const well = createMemoryTokenBuckets(now);
  const answer = Promise.withResolvers<void>();
  const shared = {
    ...well,
    async reserve(...order: Parameters<typeof well.reserve>) {
      if (world.gone) throw stateUnavailable();
      world.booked += 1;
      const waitMs = await well.reserve(...order);
      if (world.slowMs > 100) await answer.promise;
      return waitMs;
    },
  };
  const turns = createOptimisticLimiter(shared, () => 0.5, { now, stopwatch: () => () => world.slowMs });
  return { world, answer, turn: (maxWaitMs = 60_000) => turns.reserve('bucket', rate, maxWaitMs) };
}

/** A bucket that was found slow, long enough ago that a turn of one's own is free. */
async function slowBucket() {
  const bucket = prompt();
  bucket.world.slowMs = 30;
  await bucket.turn();
  bucket.world.nowMs = 10_000;
  return bucket;
}

describe('a shared bucket that is slow to answer', () => {
  test('is not waited for, and counts the turn all the same', async () => {
    const { world, answer, turn } = await slowBucket();
    world.slowMs = 1_000;
    assert.equal(await turn(), 0, 'the bucket has not answered yet');
    assert.equal(world.booked, 2);
    answer.resolve();
  });

  test('is waited for by those that come faster than this instance may send for itself', async () => {
    const { world, turn } = await slowBucket();
    const waits = [];
    for (let count = 0; count < 7; count++) waits.push(await turn());
    assert.deepEqual(
      waits,
      [0, 0, 0, 0, 100, 200, 300],
      'four at once, then one every 100 ms, as the bucket says',
    );
    world.nowMs += 199;
    assert.equal(await turn(), 201, 'at half the rate, the own turn is not back yet');
    world.nowMs += 1;
    assert.equal(await turn(), 0, 'now it is');
    assert.equal(await turn(), 400, 'and is booked, though the bucket was behind');
  });

  test('is waited for again once it answers promptly', async () => {
    const { world, turn } = await slowBucket();
    world.slowMs = 0;
    for (let count = 0; count < 7; count++) await turn();
    world.nowMs += 200;
    assert.equal(await turn(), 200, 'although a turn of its own is free');
  });

  test('that goes away is heard of by the next who asks', async () => {
    const { world, turn } = await slowBucket();
    world.gone = true;
    assert.equal(await turn(), 0);
    world.nowMs += 10_000;
    await assert.rejects(turn(), { code: 'STATE_UNAVAILABLE' });
  });
});
