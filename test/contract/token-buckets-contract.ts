/** What Reservations promise, wherever they are kept. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TokenBuckets } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

/** Turns so far apart that what a slow machine takes to ask does not matter. */
const slow = { perSecond: 0.1, burst: 1 };
const intervalMs = 10_000;
const slackMs = 2_000;
const hour = 3_600_000;

/** Puts the reservations of a kind of state to the test. */
export function testTokenBuckets({ skip, store }: StateUnderTest): void {
  describe('reservations', { skip }, () => {
    test('turns come one by one, evenly', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      for (let turn = 0; turn < 4; turn++) {
        isAbout(await tokenBuckets.reserve('bucket', slow, hour), turn * intervalMs);
      }
    });

    test('after a rest, as many come at once as the bucket holds', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      const rate = { ...slow, burst: 5 };
      for (let turn = 0; turn < 5; turn++) assert.equal(await tokenBuckets.reserve('bucket', rate, hour), 0);
      isAbout(await tokenBuckets.reserve('bucket', rate, hour), intervalMs);
      isAbout(await tokenBuckets.reserve('bucket', rate, hour), 2 * intervalMs);
    });

    test('a bucket that rested is full again, and not fuller', async (t) => {
      const { client, now, until } = await store(t);
      const { tokenBuckets } = await client();
      const rate = { perSecond: 10, burst: 2 };
      assert.ok((await waits(tokenBuckets, rate, 4)).every((wait) => wait !== undefined));
      const start = now();
      await until(5_000, 'it has rested', () => now() - start > 600);
      const [first, second, third] = await waits(tokenBuckets, rate, 3);
      assert.deepEqual([first, second], [0, 0]);
      assert.ok(third !== undefined && third > 0, `the third turn came at once as well`);
    });

    test('a turn that is too far off is refused, and is still free for who can wait', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      assert.equal(await tokenBuckets.reserve('bucket', slow, 0), 0);
      for (let tries = 0; tries < 3; tries++) {
        assert.equal(await tokenBuckets.reserve('bucket', slow, 100), undefined);
      }
      isAbout(await tokenBuckets.reserve('bucket', slow, hour), intervalMs);
    });

    test('two clients share one bucket', async (t) => {
      const { client } = await store(t);
      const clients = [await client(), await client()];
      for (let turn = 0; turn < 4; turn++) {
        isAbout(await clients[turn % 2]?.tokenBuckets.reserve('bucket', slow, hour), turn * intervalMs);
      }
    });

    test('of fifty at once no two get the same turn', async (t) => {
      const { client } = await store(t);
      const clients = [await client(), await client()];
      const booked = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          clients[index % 2]?.tokenBuckets.reserve('bucket', slow, hour),
        ),
      );
      const inOrder = booked.map((wait) => wait ?? Number.NaN).toSorted((one, other) => one - other);
      for (const [turn, wait] of inOrder.entries()) isAbout(wait, turn * intervalMs);
    });

    test('buckets of other names, and of other prefixes, are others', async (t) => {
      const { client, otherClient } = await store(t);
      const [ours, theirs] = [await client(), await otherClient()];
      assert.equal(await ours.tokenBuckets.reserve('bucket', slow, hour), 0);
      assert.equal(await ours.tokenBuckets.reserve('other', slow, hour), 0);
      assert.equal(await theirs.tokenBuckets.reserve('bucket', slow, hour), 0);
    });

    test('the rate may change from turn to turn, and holds from then on', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      assert.equal(await tokenBuckets.reserve('bucket', slow, hour), 0);
      const half = { ...slow, perSecond: slow.perSecond / 2 };
      isAbout(await tokenBuckets.reserve('bucket', half, hour), intervalMs);
      isAbout(await tokenBuckets.reserve('bucket', slow, hour), 3 * intervalMs);
    });
    test('whoever takes a turn now is told what is left, and when it comes back', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      const rate = { ...slow, burst: 3 };
      for (const left of [2, 1, 0]) {
        const taking = await tokenBuckets.take('bucket', rate);
        assert.deepEqual([taking.taken, taking.remaining], [true, left]);
        isAbout(taking.fullInMs, (3 - left) * intervalMs);
        isAbout(taking.nextPermitMs, left > 0 ? 0 : intervalMs);
      }
    });

    test('where none is left, nothing is taken, however often one asks', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      await tokenBuckets.take('bucket', slow);
      for (let tries = 0; tries < 3; tries++) {
        const { taken, remaining, nextPermitMs, fullInMs } = await tokenBuckets.take('bucket', slow);
        assert.deepEqual([taken, remaining], [false, 0]);
        isAbout(nextPermitMs, intervalMs);
        isAbout(fullInMs, intervalMs);
      }
    });

    test('turns that are taken and turns that are booked come from one bucket', async (t) => {
      const { tokenBuckets } = await (await store(t)).client();
      assert.equal(await tokenBuckets.reserve('bucket', slow, 0), 0);
      assert.equal((await tokenBuckets.take('bucket', slow)).taken, false);
      assert.equal((await tokenBuckets.take('other', slow)).taken, true);
      isAbout(await tokenBuckets.reserve('other', slow, hour), intervalMs);
    });
  });
}

const waits = async (reservations: TokenBuckets, rate: typeof slow, count: number) =>
  Promise.all(Array.from({ length: count }, () => reservations.reserve('bucket', rate, hour)));

/** The asking takes time, and the wait grows shorter by it. */
function isAbout(waitMs: number | undefined, expectedMs: number): void {
  assert.ok(
    waitMs !== undefined && waitMs <= expectedMs + 1 && waitMs >= Math.max(0, expectedMs - slackMs),
    `${waitMs} ms, and ${expectedMs} were expected`,
  );
}
