import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createFallbackLimiter } from '../../../src/state/fallback-limiter.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';
import type { TokenBuckets } from '../../../src/state/ports.ts';

const rate = { perSecond: 1, burst: 4 };

function insured(initialFill: 'full' | 'empty') {
  const world = { nowMs: 0, broken: false, asked: 0, told: [] as boolean[] };
  const now = () => world.nowMs;
  const well = createMemoryTokenBuckets(now);
  const guarded = <Answer>(answer: () => Promise<Answer>) => {
    world.asked += 1;
    return world.broken ? Promise.reject(stateUnavailable()) : answer();
  };
  const shared: TokenBuckets = {
    reserve: (...all) => guarded(() => well.reserve(...all)),
    take: (...all) => guarded(() => well.take(...all)),
  };
  const onFallback = (alone: boolean) => void world.told.push(alone);
  return { world, own: createFallbackLimiter(shared, { share: () => 0.5, initialFill, onFallback, now }) };
}

describe('while the state is out of reach', () => {
  test('an instance takes its part of the rate and of the bucket', async () => {
    const { world, own } = insured('full');
    world.broken = true;
    const waits = [];
    for (let turn = 0; turn < 4; turn++) waits.push(await own.reserve('bucket', rate, 60_000));
    assert.deepEqual(waits, [0, 0, 2_000, 4_000]);
    assert.deepEqual((await own.take('other', rate)).remaining, 1);
  });

  test('a bucket that begins with nothing gives its first turn after one interval', async () => {
    const { world, own } = insured('empty');
    world.broken = true;
    const waits = [];
    for (let turn = 0; turn < 3; turn++) waits.push(await own.reserve('bucket', rate, 60_000));
    assert.deepEqual(waits, [2_000, 4_000, 6_000]);
    assert.equal((await own.take('other', rate)).taken, false);
  });

  test('a bucket that begins with nothing holds nothing for payments either, if a read comes first', async () => {
    const { world, own } = insured('empty');
    world.broken = true;
    const asReadsSeeIt = { ...rate, burst: rate.burst / 2 };
    assert.equal(await own.reserve('bucket', asReadsSeeIt, 0), undefined);
    assert.equal(await own.reserve('bucket', rate, 0), undefined);
    world.nowMs = 3_000;
    assert.equal(await own.reserve('bucket', rate, 0), 0, 'half a turn a second');
    assert.equal(await own.reserve('bucket', rate, 0), undefined);
  });

  test('the state is asked once a second, and told of once', async () => {
    const { world, own } = insured('full');
    world.broken = true;
    for (; world.nowMs < 3_000; world.nowMs += 100) await own.take('bucket', rate);
    assert.deepEqual([world.asked, world.told], [3, [true]]);
    world.broken = false;
    await own.take('bucket', rate);
    assert.deepEqual(world.told, [true, false]);
  });
});

describe('when the state is back', () => {
  test('what was just taken alone is missing in the shared bucket', async () => {
    const { world, own } = insured('empty');
    world.broken = true;
    assert.equal(await own.reserve('bucket', rate, 0), undefined); // its own bucket begins to fill
    world.nowMs = 10_000;
    assert.equal(await own.reserve('bucket', rate, 0), 0); // the state is asked in vain once more
    world.nowMs = 10_900;
    assert.deepEqual(
      [await own.reserve('bucket', rate, 0), await own.reserve('bucket', rate, 0)],
      [0, undefined],
    );
    world.broken = false;
    world.nowMs = 11_000;
    const waits = await Promise.all([1, 2, 3].map(() => own.reserve('bucket', rate, 60_000)));
    assert.deepEqual(waits, [0, 0, 500]); // of the four, one and a half are missing
  });

  test('what was taken long ago is not, nor what only could not be had in the beginning', async () => {
    const { world, own } = insured('empty');
    world.broken = true;
    await own.reserve('bucket', rate, 2_000);
    await own.reserve('other', rate, 0);
    world.broken = false;
    world.nowMs = 10_000;
    for (const bucket of ['bucket', 'other']) assert.equal((await own.take(bucket, rate)).remaining, 3);
  });
});

test('any other error is nothing to go on alone about', async () => {
  const fails = () => Promise.reject(new TypeError('a bug'));
  const own = createFallbackLimiter({ reserve: fails, take: fails }, { share: () => 1, initialFill: 'full' });
  await assert.rejects(own.reserve('bucket', rate, 0), TypeError);
});
