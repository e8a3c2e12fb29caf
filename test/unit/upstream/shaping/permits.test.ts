import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createPermitPrefetch } from '../../../../src/upstream/shaping/permits.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

/** @param waits the wait of each reservation in turn; `undefined` from the end on */
function startPrefetch(t: TestContext, waits: readonly (number | undefined)[]) {
  const time = simulateTime(t);
  const requests: number[] = [];
  const counts = { delivered: 0, outOfReach: 0 };
  const prefetch = createPermitPrefetch({
    async reserve(maxWaitMs) {
      requests.push(maxWaitMs);
      return waits[requests.length - 1];
    },
    maxWaitMs: 5_000,
    onPermit: () => {
      counts.delivered += 1;
    },
    onOutOfReach: () => {
      counts.outOfReach += 1;
    },
    onProgress: () => {},
  });
  return { time, prefetch, requests, counts };
}

test('a permit is never delivered early, although timers count whole milliseconds', async (t) => {
  const { time, prefetch, counts } = startPrefetch(t, [33.34]);
  prefetch.request(1);
  await time.pass(33);
  assert.equal(counts.delivered, 0);
  await time.pass(1);
  assert.equal(counts.delivered, 1);
});

test('only one permit is reserved ahead, regardless of the demand', async (t) => {
  const { time, prefetch, requests } = startPrefetch(t, [1_000]);
  prefetch.request(100);
  await time.settle();
  prefetch.request(100);
  assert.deepEqual([requests, prefetch.pendingCount()], [[5_000], 1]);
});

test('more permits are requested while they are available immediately, and only the first may be in the future', async (t) => {
  const { time, prefetch, requests, counts } = startPrefetch(t, [0, 0, 0, 1_000]);
  for (let round = 0; round < 4; round++) {
    prefetch.request(100);
    await time.settle();
  }
  assert.deepEqual([requests.slice(0, 5), counts.delivered], [[5_000, 5_000, 0, 5_000, 0], 3]);
  assert.equal(prefetch.pendingCount(), 1);
});

test('a permit beyond the longest wait is reported', async (t) => {
  const { time, prefetch, counts } = startPrefetch(t, [undefined]);
  prefetch.request(1);
  await time.settle();
  assert.deepEqual([counts.outOfReach, prefetch.pendingCount(), prefetch.isRequesting()], [1, 0, false]);
});
