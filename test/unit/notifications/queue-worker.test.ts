import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  createQueueWorker,
  type LeasedWork,
  type QueueWorkerDependencies,
} from '../../../src/notifications/queue-worker.ts';
import { DatabaseError } from '../../../src/store/database.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { newSubscriptions } from '../../kit/subscription-table.ts';
import { until } from '../../kit/within.ts';

/** Subscriptions of these tenants with deliveries that are due. */
async function storeDue(t: TestContext, counts: Readonly<Record<string, number>>) {
  const stored = await newSubscriptions(t);
  for (const [tenant, count] of Object.entries(counts))
    for (let index = 0; index < count; index++)
      await stored.put(subscriptionSince(Date.now(), { tenant, paymentId: `${tenant} ${index}` }), {
        deliveryInMs: 0,
      });
  return stored;
}

const createWorker = (
  dependencies: Omit<QueueWorkerDependencies, 'work' | 'onBug'> & Partial<QueueWorkerDependencies>,
) => createQueueWorker({ work: 'delivery', onBug: assert.ifError, ...dependencies });

const queuesOf = (...tenants: readonly string[]) => tenants.map((tenant) => ({ tenant }));

describe('the worker on queues', () => {
  test('takes work of all queues in turn, no more than it may have, and the rest when some is done', async (t) => {
    const { table, workOf } = await storeDue(t, { large: 30, small: 2 });
    const working: LeasedWork[] = [];
    const ends: (() => void)[] = [];
    const worker = createWorker({
      table,
      queues: () => queuesOf('large', 'small'),
      maxAtOnce: 6,
      maxPerQueue: 4,
      async handle(leased) {
        working.push(leased);
        await new Promise<void>((resolve) => ends.push(resolve));
        await leased.leave(undefined);
      },
    });
    t.after(() => worker.stop());
    await worker.run();
    const tenants = working.map(({ taken: { tenant } }) => tenant);
    assert.equal(tenants.filter((tenant) => tenant === 'large').length, 4);
    assert.equal(tenants.filter((tenant) => tenant === 'small').length, 2);

    await until(5_000, 'all work is done', async () => {
      for (const end of ends.splice(0)) end();
      return (await workOf('delivery')).all === 0;
    });
    assert.equal(working.length, 32);
    assert.equal(new Set(working.map(({ taken: { id } }) => id)).size, 32);
  });

  test('looks again only into queues that may have more when some work is done, and gives each of them its turn', async (t) => {
    const { table } = await storeDue(t, { large: 30, small: 6 });
    const searched: string[] = [];
    const ends: (() => void)[] = [];
    const handled: string[] = [];
    const worker = createWorker({
      table: {
        ...table,
        take(work, queues, ...more) {
          searched.push(...queues.map(({ tenant }) => tenant));
          return table.take(work, queues, ...more);
        },
      },
      queues: () => queuesOf('empty', 'large', 'nothing due', 'small'),
      maxAtOnce: 4,
      maxPerQueue: 2,
      async handle(leased) {
        handled.push(leased.taken.tenant);
        await new Promise<void>((resolve) => ends.push(resolve));
        await leased.leave(undefined);
      },
    });
    t.after(() => {
      const stopped = worker.stop();
      for (const end of ends) end();
      return stopped;
    });
    await worker.run();
    await until(5_000, 'this instance has enough', () => handled.length === 4);
    searched.splice(0);

    for (let done = 1; done <= 6; done++) {
      ends.shift()?.();
      await until(5_000, 'more work follows', () => handled.length === 4 + done);
    }
    assert.deepEqual(new Set(searched), new Set(['large', 'small']));
    assert.equal(handled.filter((tenant) => tenant === 'large').length, 5);
    assert.equal(handled.filter((tenant) => tenant === 'small').length, 5);
  });

  test('interrupts the work when its lease is lost, and when the instance stops', async (t) => {
    const { table, workOf } = await storeDue(t, { tenant: 1 });
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ended: boolean[] = [];
    const one = { queues: () => queuesOf('tenant'), maxAtOnce: 1, maxPerQueue: 1 };
    let extended = 0;
    const worker = createWorker({
      ...one,
      table: {
        ...table,
        extend(...leases) {
          extended += 1;
          return table.extend(...leases);
        },
      },
      async handle(leased) {
        await new Promise((resolve) => leased.signal.addEventListener('abort', resolve, { once: true }));
        ended.push(leased.isLost());
        await leased.leave(0);
      },
    });
    await worker.run();
    t.mock.timers.tick(2_000);
    await until(5_000, 'the lease is extended', () => extended === 1);
    assert.equal(ended.length, 0);
    await worker.stop();
    assert.deepEqual(ended, [false]);
    assert.deepEqual(await workOf('delivery'), { all: 1, due: 1, leased: 0 }, 'another instance can take it');

    const second = createWorker({
      ...one,
      table: { ...table, extend: async () => new Set<string>() },
      async handle(leased) {
        await new Promise((resolve) => leased.signal.addEventListener('abort', resolve, { once: true }));
        ended.push(leased.isLost());
      },
    });
    await second.run();
    t.mock.timers.tick(2_000);
    await until(5_000, 'the work ends', () => ended.length === 2);
    assert.deepEqual(ended, [false, true]);
    await second.stop();
  });

  test('goes on after the database was unavailable', async (t) => {
    const { table } = await storeDue(t, { tenant: 1 });
    let isAvailable = false;
    const taken: string[] = [];
    const worker = createWorker({
      table: {
        ...table,
        take: async (...args) => (isAvailable ? table.take(...args) : Promise.reject(new Error('away'))),
      },
      queues: () => queuesOf('tenant'),
      maxAtOnce: 1,
      maxPerQueue: 1,
      async handle(leased) {
        taken.push(leased.taken.id);
        throw new DatabaseError('it is away', 'none');
      },
    });
    t.after(() => worker.stop());
    await worker.run();
    assert.deepEqual(taken, []);
    isAvailable = true;
    await worker.run();
    assert.deepEqual(taken, ['tenant 0']);
  });

  test('interrupts work whose lease has ended unnoticed when the same instance takes it again', async (t) => {
    const { table, clock } = await storeDue(t, { tenant: 1 });
    const jobs: LeasedWork[] = [];
    const worker = createWorker({
      table,
      queues: () => queuesOf('tenant'),
      maxAtOnce: 2,
      maxPerQueue: 2,
      async handle(leased) {
        jobs.push(leased);
        await new Promise((resolve) => leased.signal.addEventListener('abort', resolve, { once: true }));
      },
    });
    t.after(() => worker.stop());
    await worker.run();
    clock.aheadMs += 7_000;
    await worker.run();
    assert.deepEqual(
      jobs.map((job) => job.isLost()),
      [true, false],
    );
  });

  test('reports work that cannot be done, and tries it again later, not with every lease', async (t) => {
    const { table, workOf } = await storeDue(t, { tenant: 1 });
    for (const thrown of [new Error('a bug'), new DatabaseError('a value is not accepted', 'none-ever')]) {
      const bugs: unknown[] = [];
      await table.reschedule('delivery', 'tenant 0', { inMs: 0 });
      const worker = createWorker({
        table,
        queues: () => queuesOf('tenant'),
        maxAtOnce: 1,
        maxPerQueue: 1,
        handle: () => Promise.reject(thrown),
        onBug: (bug) => bugs.push(bug),
      });
      await worker.run();
      await worker.stop();
      assert.deepEqual(bugs, [thrown]);
      assert.deepEqual(await workOf('delivery'), { all: 1, due: 0, leased: 0 });
    }
  });
});
