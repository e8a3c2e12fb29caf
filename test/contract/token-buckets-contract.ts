/** The contract of TokenBuckets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SharedTokenBuckets, TokenBuckets } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

/** An interval so long that the time of the calls on a slow machine does not matter. */
const slow = { perSecond: 0.1, burst: 1 };
const intervalMs = 10_000;
const toleranceMs = 2_000;
const hour = 3_600_000;

export function testTokenBuckets({ skip, createStore }: StateUnderTest): void {
  describe('token buckets', { skip }, () => {
    test('reserve issues permits at even intervals', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      for (let count = 0; count < 4; count++) {
        assertAbout(await tokenBuckets.reserve('bucket', slow, hour), count * intervalMs);
      }
    });

    test('a full bucket issues its burst at once', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      const rate = { ...slow, burst: 5 };
      for (let count = 0; count < 5; count++)
        assert.equal(await tokenBuckets.reserve('bucket', rate, hour), 0);
      assertAbout(await tokenBuckets.reserve('bucket', rate, hour), intervalMs);
      assertAbout(await tokenBuckets.reserve('bucket', rate, hour), 2 * intervalMs);
    });

    test('an idle bucket fills up to its burst, and no further', async (t) => {
      const { client, now, until } = await createStore(t);
      const { tokenBuckets } = await client();
      const rate = { perSecond: 10, burst: 2 };
      assert.ok((await reserveMany(tokenBuckets, rate, 4)).every((wait) => wait !== undefined));
      const start = now();
      await until(5_000, 'the bucket is full', () => now() - start > 600);
      const [first, second, third] = await reserveMany(tokenBuckets, rate, 3);
      assert.deepEqual([first, second], [0, 0]);
      assert.ok(third !== undefined && third > 0, 'the third permit was available at once');
    });

    test('a refused reservation leaves the permit to callers that accept a longer wait', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      assert.equal(await tokenBuckets.reserve('bucket', slow, 0), 0);
      for (let tries = 0; tries < 3; tries++) {
        assert.equal(await tokenBuckets.reserve('bucket', slow, 100), undefined);
      }
      assertAbout(await tokenBuckets.reserve('bucket', slow, hour), intervalMs);
    });

    test('two clients share a bucket', async (t) => {
      const { client } = await createStore(t);
      const clients = [await client(), await client()];
      for (let count = 0; count < 4; count++) {
        const wait = await clients[count % 2]?.tokenBuckets.reserve('bucket', slow, hour);
        assertAbout(wait, count * intervalMs);
      }
    });

    test('fifty concurrent reservations get fifty different permits', async (t) => {
      const { client } = await createStore(t);
      const clients = [await client(), await client()];
      const waits = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          clients[index % 2]?.tokenBuckets.reserve('bucket', slow, hour),
        ),
      );
      const sorted = waits.map((wait) => wait ?? Number.NaN).toSorted((one, other) => one - other);
      for (const [index, wait] of sorted.entries()) assertAbout(wait, index * intervalMs);
    });

    test('buckets with different names or prefixes are independent', async (t) => {
      const { client, otherClient } = await createStore(t);
      const [ours, theirs] = [await client(), await otherClient()];
      assert.equal(await ours.tokenBuckets.reserve('bucket', slow, hour), 0);
      assert.equal(await ours.tokenBuckets.reserve('other', slow, hour), 0);
      assert.equal(await theirs.tokenBuckets.reserve('bucket', slow, hour), 0);
    });

    test('a changed rate applies from the next permit on', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      assert.equal(await tokenBuckets.reserve('bucket', slow, hour), 0);
      const half = { ...slow, perSecond: slow.perSecond / 2 };
      assertAbout(await tokenBuckets.reserve('bucket', half, hour), intervalMs);
      assertAbout(await tokenBuckets.reserve('bucket', slow, hour), 3 * intervalMs);
    });

    test('take returns how many permits remain, and when the next one is available', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      const rate = { ...slow, burst: 3 };
      for (const remaining of [2, 1, 0]) {
        const result = await tokenBuckets.take('bucket', rate);
        assert.deepEqual([result.taken, result.remaining], [true, remaining]);
        assertAbout(result.fullInMs, (3 - remaining) * intervalMs);
        assertAbout(result.nextPermitMs, remaining > 0 ? 0 : intervalMs);
      }
    });

    test('take on an empty bucket changes nothing', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      await tokenBuckets.take('bucket', slow);
      for (let tries = 0; tries < 3; tries++) {
        const { taken, remaining, nextPermitMs, fullInMs } = await tokenBuckets.take('bucket', slow);
        assert.deepEqual([taken, remaining], [false, 0]);
        assertAbout(nextPermitMs, intervalMs);
        assertAbout(fullInMs, intervalMs);
      }
    });

    test('a lease grants as many permits as are available, and counts them until they are used or returned', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).tokenBuckets, (await client()).tokenBuckets];
      if (!one.isShared || !other.isShared) return t.skip('no other instance shares these buckets');
      const rate = { ...slow, burst: 5 };
      const lease = (held: number, returned: number) => ({ id: 'one', held, returned, immediate: 0 });
      const request = (wanted: number, held: number, returned: number) =>
        one.lease('bucket', rate, { wanted, maxWaitMs: 0, lease: lease(held, returned) });
      const { granted, waitMs } = await request(3, 0, 0);
      assert.deepEqual([granted, waitMs], [3, 0]);
      assert.equal((await other.lease('bucket', rate, { wanted: 9, maxWaitMs: 0 })).granted, 2);
      const refused = await other.lease('bucket', rate, { wanted: 1, maxWaitMs: 0 });
      assert.equal(refused.granted, 0);
      assertAbout(refused.waitMs, intervalMs);
      assert.equal((await request(0, 1, 1)).granted, 0, 'one used, one returned, one held');
      assert.equal((await other.lease('bucket', rate, { wanted: 9, maxWaitMs: 0 })).granted, 1);
      const reserved = await other.lease('bucket', rate, { wanted: 9, maxWaitMs: hour });
      assert.equal(reserved.granted, 1);
      assertAbout(reserved.waitMs, intervalMs);
    });

    test('a permit is given back unless the bucket was used since', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).tokenBuckets, (await client()).tokenBuckets];
      if (!one.isShared || !other.isShared) return t.skip('no other instance shares these buckets');
      const rate = { ...slow, burst: 2 };
      const take = (from: SharedTokenBuckets) => from.lease('bucket', rate, { wanted: 1, maxWaitMs: 0 });
      const first = await take(one);
      assert.equal(await one.giveBack('bucket', rate, first.after), true);
      assert.equal(await one.giveBack('bucket', rate, first.after), false, 'only once');
      const second = await take(one);
      assert.equal((await take(other)).granted, 1);
      assert.equal(await one.giveBack('bucket', rate, second.after), false);
      assert.equal((await take(other)).granted, 0);
    });

    test('a bucket does not fill up beyond its burst while permits are leased', async (t) => {
      const { client, until } = await createStore(t);
      const { tokenBuckets } = await client();
      if (!tokenBuckets.isShared) return t.skip('no other instance shares this bucket');
      const rate = { perSecond: 100, burst: 4 };
      const lease = { id: 'one', held: 0, returned: 0, immediate: 0 };
      const { granted } = await tokenBuckets.lease('bucket', rate, { wanted: 3, maxWaitMs: 0, lease });
      assert.equal(granted, 3);
      const renewed = { ...lease, held: 3 };
      for (let one = 0; one < 20; one++)
        await tokenBuckets.lease('bucket', rate, { wanted: 0, maxWaitMs: 0, lease: renewed });
      const start = performance.now();
      await until(5_000, 'an unleased bucket would be full', () => performance.now() - start > 60);
      assert.equal((await tokenBuckets.lease('bucket', rate, { wanted: 9, maxWaitMs: 0 })).granted, 1);
    });

    test('take and reserve use the same bucket', async (t) => {
      const { tokenBuckets } = await (await createStore(t)).client();
      assert.equal(await tokenBuckets.reserve('bucket', slow, 0), 0);
      assert.equal((await tokenBuckets.take('bucket', slow)).taken, false);
      assert.equal((await tokenBuckets.take('other', slow)).taken, true);
      assertAbout(await tokenBuckets.reserve('other', slow, hour), intervalMs);
    });
  });
}

const reserveMany = async (tokenBuckets: TokenBuckets, rate: typeof slow, count: number) =>
  Promise.all(Array.from({ length: count }, () => tokenBuckets.reserve('bucket', rate, hour)));

/** The calls take time, which shortens the wait. */
function assertAbout(waitMs: number | undefined, expectedMs: number): void {
  assert.ok(
    waitMs !== undefined && waitMs <= expectedMs + 1 && waitMs >= Math.max(0, expectedMs - toleranceMs),
    `${waitMs} ms instead of ${expectedMs} ms`,
  );
}
