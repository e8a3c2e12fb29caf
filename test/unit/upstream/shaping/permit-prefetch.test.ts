import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createPermitPrefetch } from '../../../../src/upstream/shaping/permit-prefetch.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

/** @param waits what the bucket answers, question by question; then that there is no turn */
function startTurns(t: TestContext, waits: readonly (number | undefined)[]) {
  const time = simulateTime(t);
  const asked: number[] = [];
  const world = { came: 0, outOfReach: 0 };
  const turns = createPermitPrefetch({
    async reserve(maxWaitMs) {
      asked.push(maxWaitMs);
      return waits[asked.length - 1];
    },
    maxWaitMs: 5_000,
    onPermit: () => {
      world.came += 1;
    },
    onOutOfReach: () => {
      world.outOfReach += 1;
    },
    onProgress: () => {},
  });
  return { time, turns, asked, world };
}

test('a turn never comes before its time, though timers count whole milliseconds', async (t) => {
  const { time, turns, world } = startTurns(t, [33.34]);
  turns.request(1);
  await time.pass(33);
  assert.equal(world.came, 0);
  await time.pass(1);
  assert.equal(world.came, 1);
});

test('one is booked ahead, however many are wanted', async (t) => {
  const { time, turns, asked } = startTurns(t, [1_000]);
  turns.request(100);
  await time.settle();
  turns.request(100);
  assert.deepEqual([asked, turns.pendingCount()], [[5_000], 1]);
});

test('more and more are asked for while they come at once, and only the first of them is waited for', async (t) => {
  const { time, turns, asked, world } = startTurns(t, [0, 0, 0, 1_000]);
  for (let round = 0; round < 4; round++) {
    turns.request(100);
    await time.settle();
  }
  assert.deepEqual([asked.slice(0, 5), world.came], [[5_000, 5_000, 0, 5_000, 0], 3]);
  assert.equal(turns.pendingCount(), 1);
});

test('a turn later than anybody waits is told', async (t) => {
  const { time, turns, world } = startTurns(t, [undefined]);
  turns.request(1);
  await time.settle();
  assert.deepEqual([world.outOfReach, turns.pendingCount(), turns.isRequesting()], [1, 0, false]);
});
