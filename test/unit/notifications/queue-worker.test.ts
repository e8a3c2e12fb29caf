import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createQueueWorker, type LeasedRecord } from '../../../src/notifications/queue-worker.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemorySchedules } from '../../../src/state/former/memory-schedules.ts';
import { until } from '../../kit/within.ts';

async function createSchedules(...queues: readonly (readonly [name: string, records: number])[]) {
  const schedules = createMemorySchedules(() => performance.now());
  for (const [queue, records] of queues)
    for (let index = 0; index < records; index++)
      await schedules.write(`${queue} ${index}`, 0, '', [{ queue, inMs: 0 }]);
  return schedules;
}

describe('the worker on queues', () => {
  test('takes records of all queues in turn, no more than it may have, and the rest when some are done', async (t) => {
    const schedules = await createSchedules(['large', 30], ['small', 2]);
    const working: LeasedRecord[] = [];
    const ends: (() => void)[] = [];
    const worker = createQueueWorker({
      schedules,
      queues: () => ['large', 'small'],
      maxRecords: 6,
      maxPerQueue: 4,
      onBug: assert.ifError,
      async handle(leased) {
        working.push(leased);
        await new Promise<void>((resolve) => ends.push(resolve));
        await schedules.reschedule(leased.key, {
          queue: leased.queue,
          inMs: undefined,
          lease: leased.lease(),
        });
      },
    });
    t.after(() => worker.stop());
    await worker.run();
    const queues = working.map(({ queue }) => queue);
    assert.equal(queues.filter((queue) => queue === 'large').length, 4);
    assert.equal(queues.filter((queue) => queue === 'small').length, 2);

    await until(5_000, 'all records are done', async () => {
      for (const end of ends.splice(0)) end();
      const counts = await Promise.all(['large', 'small'].map(schedules.count));
      return counts.every(({ all }) => all === 0);
    });
    assert.equal(working.length, 32);
    assert.equal(new Set(working.map(({ key }) => key)).size, 32);
  });

  test('looks again only into queues that may have more when some records are done, and gives each of them its turn', async (t) => {
    const schedules = await createSchedules(['large', 30], ['small', 6]);
    const searched: string[] = [];
    const ends: (() => void)[] = [];
    const handled: string[] = [];
    const worker = createQueueWorker({
      schedules: {
        ...schedules,
        take(queue, ...more) {
          searched.push(queue);
          return schedules.take(queue, ...more);
        },
      },
      queues: () => ['empty', 'large', 'nothing due', 'small'],
      maxRecords: 4,
      maxPerQueue: 2,
      onBug: assert.ifError,
      async handle({ key, queue, lease }) {
        handled.push(queue);
        await new Promise<void>((resolve) => ends.push(resolve));
        await schedules.reschedule(key, { queue, inMs: undefined, lease: lease() });
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
      await until(5_000, 'another record follows', () => handled.length === 4 + done);
    }
    assert.deepEqual(new Set(searched), new Set(['large', 'small']));
    assert.equal(handled.filter((queue) => queue === 'large').length, 5);
    assert.equal(handled.filter((queue) => queue === 'small').length, 5);
  });

  test('interrupts the work when another instance has taken the record, and when it stops', async (t) => {
    const schedules = await createSchedules(['queue', 1]);
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ended: boolean[] = [];
    const onEnd = (isLost: boolean) => void ended.push(isLost);
    const worker = createQueueWorker({
      schedules,
      queues: () => ['queue'],
      maxRecords: 1,
      maxPerQueue: 1,
      onBug: assert.ifError,
      async handle(leased) {
        await new Promise((resolve) => leased.signal.addEventListener('abort', resolve, { once: true }));
        onEnd(leased.isLost());
        await schedules.reschedule(leased.key, { queue: 'queue', inMs: 0, lease: leased.lease() });
      },
    });
    await worker.run();
    t.mock.timers.tick(2_000);
    assert.deepEqual(ended, [], 'the lease was extended');
    await worker.stop();
    assert.deepEqual(ended, [false]);
    assert.deepEqual(await schedules.count('queue'), { all: 1, due: 1 }, 'another instance can take it');

    const [lease, ...others] = await schedules.take('queue', 1, 1);
    assert.equal(others.length, 0);
    const second = createQueueWorker({
      schedules: { ...schedules, take: async () => (lease ? [lease] : []), extend: async () => undefined },
      queues: () => ['queue'],
      maxRecords: 1,
      maxPerQueue: 1,
      onBug: assert.ifError,
      async handle(leased) {
        await new Promise((resolve) => leased.signal.addEventListener('abort', resolve, { once: true }));
        onEnd(leased.isLost());
      },
    });
    await second.run();
    t.mock.timers.tick(2_000);
    await until(5_000, 'the work ends', () => ended.length === 2);
    assert.deepEqual(ended, [false, true]);
    await second.stop();
  });

  test('goes on after the shared state was unavailable', async (t) => {
    const schedules = await createSchedules(['queue', 1]);
    let isAvailable = false;
    const taken: string[] = [];
    const worker = createQueueWorker({
      schedules: {
        ...schedules,
        take: async (...args) => (isAvailable ? schedules.take(...args) : Promise.reject(new Error('away'))),
      },
      queues: () => ['queue'],
      maxRecords: 1,
      maxPerQueue: 1,
      onBug: assert.ifError,
      async handle({ key }) {
        taken.push(key);
        throw new GatewayError('STATE_UNAVAILABLE', 'The shared state is unavailable.');
      },
    });
    t.after(() => worker.stop());
    await worker.run();
    assert.deepEqual(taken, []);
    isAvailable = true;
    await worker.run();
    assert.deepEqual(taken, ['queue 0']);
  });
});
