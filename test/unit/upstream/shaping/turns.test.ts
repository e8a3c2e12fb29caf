import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTurns } from '../../../../src/upstream/shaping/turns.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

/** @param waits what the bucket answers, question by question; then that there is no turn */
function startTurns(t: TestContext, waits: readonly (number | undefined)[]) {
  const time = simulateTime(t);
  const asked: number[] = [];
  const world = { came: 0, outOfReach: 0 };
  const turns = createTurns({
    async book(maxWaitMs) {
      asked.push(maxWaitMs);
      return waits[asked.length - 1];
    },
    longestWaitMs: 5_000,
    came: () => {
      world.came += 1;
    },
    outOfReach: () => {
      world.outOfReach += 1;
    },
    moved: () => {},
  });
  return { time, turns, asked, world };
}

test('a turn never comes before its time, though timers count whole milliseconds', async (t) => {
  const { time, turns, world } = startTurns(t, [33.34]);
  turns.want(1);
  await time.pass(33);
  assert.equal(world.came, 0);
  await time.pass(1);
  assert.equal(world.came, 1);
});

test('one is booked ahead, however many are wanted', async (t) => {
  const { time, turns, asked } = startTurns(t, [1_000]);
  turns.want(100);
  await time.settle();
  turns.want(100);
  assert.deepEqual([asked, turns.expected()], [[5_000], 1]);
});

test('more and more are asked for while they come at once, and only the first of them is waited for', async (t) => {
  const { time, turns, asked, world } = startTurns(t, [0, 0, 0, 1_000]);
  for (let round = 0; round < 4; round++) {
    turns.want(100);
    await time.settle();
  }
  assert.deepEqual([asked.slice(0, 5), world.came], [[5_000, 5_000, 0, 5_000, 0], 3]);
  assert.equal(turns.expected(), 1);
});

test('a turn later than anybody waits is told', async (t) => {
  const { time, turns, world } = startTurns(t, [undefined]);
  turns.want(1);
  await time.settle();
  assert.deepEqual([world.outOfReach, turns.expected(), turns.asking()], [1, 0, false]);
});
