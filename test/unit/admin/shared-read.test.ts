import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { shareRead } from '../../../src/admin/shared-read.ts';

/** A read that takes 100 ms, on a manual clock. */
function startReads() {
  let nowMs = 0;
  const started: number[] = [];
  const waited: number[] = [];
  const running: PromiseWithResolvers<number>[] = [];
  const ask = shareRead(
    () => {
      started.push(nowMs);
      const reading = Promise.withResolvers<number>();
      running.push(reading);
      return reading.promise;
    },
    {
      now: () => nowMs,
      wait: async (ms) => {
        waited.push(ms);
        nowMs += ms;
      },
    },
  );
  /** Ends the current read with its number. */
  const end = async (failure?: Error) => {
    nowMs += 100;
    const reading = running.at(-1);
    if (failure) reading?.reject(failure);
    else reading?.resolve(started.length);
    await setImmediate();
  };
  return { ask, end, started, waited };
}

describe('a shared read', () => {
  test('is the same for all who ask before it begins, and another one for those who ask while it runs', async () => {
    const { ask, end, started } = startReads();
    const first = [ask(), ask()];
    await setImmediate();
    assert.equal(started.length, 1);
    const second = [ask(), ask()];
    await setImmediate();
    assert.equal(started.length, 1, 'one at a time');
    await end();
    assert.deepEqual(await Promise.all(first), [1, 1]);
    assert.equal(started.length, 2);
    await end();
    assert.deepEqual(await Promise.all(second), [2, 2]);
  });

  test('waits four times as long as the last one took', async () => {
    const { ask, end, started, waited } = startReads();
    void ask();
    await setImmediate();
    await end();
    void ask();
    await setImmediate();
    assert.deepEqual([started, waited], [[0, 500], [400]]);
  });

  test('fails for those who share it, and not for those who ask afterwards', async () => {
    const { ask, end } = startReads();
    const first = [ask(), ask()].map((asked) => assert.rejects(asked, /no state/));
    await setImmediate();
    const second = ask();
    await end(new Error('no state'));
    await Promise.all(first);
    await end();
    assert.equal(await second, 2);
  });
});
