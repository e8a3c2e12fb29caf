/** What Reservations promise, wherever they are kept. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Reservations } from '../../src/state/ports.ts';
import type { KindOfState } from './kind-of-state.ts';

/** Turns so far apart that what a slow machine takes to ask does not matter. */
const slow = { perSecond: 0.1, burst: 1 };
const intervalMs = 10_000;
const slackMs = 2_000;
const hour = 3_600_000;

/** Puts the reservations of a kind of state to the test. */
export function promisesOfReservations({ skip, store }: KindOfState): void {
  describe('reservations', { skip }, () => {
    test('turns come one by one, evenly', async (t) => {
      const { reservations } = await (await store(t)).client();
      for (let turn = 0; turn < 4; turn++) {
        isAbout(await reservations.reserve('bucket', slow, hour), turn * intervalMs);
      }
    });

    test('after a rest, as many come at once as the bucket holds', async (t) => {
      const { reservations } = await (await store(t)).client();
      const rate = { ...slow, burst: 5 };
      for (let turn = 0; turn < 5; turn++) assert.equal(await reservations.reserve('bucket', rate, hour), 0);
      isAbout(await reservations.reserve('bucket', rate, hour), intervalMs);
      isAbout(await reservations.reserve('bucket', rate, hour), 2 * intervalMs);
    });

    test('a bucket that rested is full again, and not fuller', async (t) => {
      const { client, now, until } = await store(t);
      const { reservations } = await client();
      const rate = { perSecond: 10, burst: 2 };
      assert.ok((await waits(reservations, rate, 4)).every((wait) => wait !== undefined));
      const start = now();
      await until(5_000, 'it has rested', () => now() - start > 600);
      const [first, second, third] = await waits(reservations, rate, 3);
      assert.deepEqual([first, second], [0, 0]);
      assert.ok(third !== undefined && third > 0, `the third turn came at once as well`);
    });

    test('a turn that is too far off is refused, and is still free for who can wait', async (t) => {
      const { reservations } = await (await store(t)).client();
      assert.equal(await reservations.reserve('bucket', slow, 0), 0);
      for (let tries = 0; tries < 3; tries++) {
        assert.equal(await reservations.reserve('bucket', slow, 100), undefined);
      }
      isAbout(await reservations.reserve('bucket', slow, hour), intervalMs);
    });

    test('two clients share one bucket', async (t) => {
      const { client } = await store(t);
      const clients = [await client(), await client()];
      for (let turn = 0; turn < 4; turn++) {
        isAbout(await clients[turn % 2]?.reservations.reserve('bucket', slow, hour), turn * intervalMs);
      }
    });

    test('of fifty at once no two get the same turn', async (t) => {
      const { client } = await store(t);
      const clients = [await client(), await client()];
      const booked = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          clients[index % 2]?.reservations.reserve('bucket', slow, hour),
        ),
      );
      const inOrder = booked.map((wait) => wait ?? Number.NaN).toSorted((one, other) => one - other);
      for (const [turn, wait] of inOrder.entries()) isAbout(wait, turn * intervalMs);
    });

    test('buckets of other names, and of other prefixes, are others', async (t) => {
      const { client, stranger } = await store(t);
      const [ours, theirs] = [await client(), await stranger()];
      assert.equal(await ours.reservations.reserve('bucket', slow, hour), 0);
      assert.equal(await ours.reservations.reserve('other', slow, hour), 0);
      assert.equal(await theirs.reservations.reserve('bucket', slow, hour), 0);
    });

    test('the rate may change from turn to turn, and holds from then on', async (t) => {
      const { reservations } = await (await store(t)).client();
      assert.equal(await reservations.reserve('bucket', slow, hour), 0);
      const half = { ...slow, perSecond: slow.perSecond / 2 };
      isAbout(await reservations.reserve('bucket', half, hour), intervalMs);
      isAbout(await reservations.reserve('bucket', slow, hour), 3 * intervalMs);
    });
    test('whoever takes a turn now is told what is left, and when it comes back', async (t) => {
      const { reservations } = await (await store(t)).client();
      const rate = { ...slow, burst: 3 };
      for (const left of [2, 1, 0]) {
        const taking = await reservations.take('bucket', rate);
        assert.deepEqual([taking.taken, taking.left], [true, left]);
        isAbout(taking.fullMs, (3 - left) * intervalMs);
        isAbout(taking.nextMs, left > 0 ? 0 : intervalMs);
      }
    });

    test('where none is left, nothing is taken, however often one asks', async (t) => {
      const { reservations } = await (await store(t)).client();
      await reservations.take('bucket', slow);
      for (let tries = 0; tries < 3; tries++) {
        const { taken, left, nextMs, fullMs } = await reservations.take('bucket', slow);
        assert.deepEqual([taken, left], [false, 0]);
        isAbout(nextMs, intervalMs);
        isAbout(fullMs, intervalMs);
      }
    });

    test('turns that are taken and turns that are booked come from one bucket', async (t) => {
      const { reservations } = await (await store(t)).client();
      assert.equal(await reservations.reserve('bucket', slow, 0), 0);
      assert.equal((await reservations.take('bucket', slow)).taken, false);
      assert.equal((await reservations.take('other', slow)).taken, true);
      isAbout(await reservations.reserve('other', slow, hour), intervalMs);
    });
  });
}

const waits = async (reservations: Reservations, rate: typeof slow, count: number) =>
  Promise.all(Array.from({ length: count }, () => reservations.reserve('bucket', rate, hour)));

/** The asking takes time, and the wait grows shorter by it. */
function isAbout(waitMs: number | undefined, expectedMs: number): void {
  assert.ok(
    waitMs !== undefined && waitMs <= expectedMs + 1 && waitMs >= Math.max(0, expectedMs - slackMs),
    `${waitMs} ms, and ${expectedMs} were expected`,
  );
}
