/** The contract tests of `Schedules`, which every implementation of the state must pass. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Schedules } from '../../src/state/former/schedules.ts';
import type { StateUnderTest } from './state-contract.ts';

const hourMs = 3_600_000;

export function testSchedules({ skip, createStore }: StateUnderTest): void {
  describe('schedules', { skip }, () => {
    test('a record is written if it has the expected version, and read back by every client', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).schedules, (await client()).schedules];
      assert.equal(await one.read('key'), undefined);
      assert.equal(await one.write('key', 7, 'text', []), undefined);

      const first = await one.write('key', 0, 'text', []);
      assert.ok(first);
      assert.deepEqual(await other.read('key'), { version: first, text: 'text' });
      assert.equal(await other.write('key', 0, 'another', []), undefined);
      const second = await other.write('key', first, 'another', []);
      assert.ok(second && second > first);
      assert.equal(await one.write('key', first, 'too late', []), undefined);
      assert.deepEqual(await one.read('key'), { version: second, text: 'another' });

      assert.ok(await one.write('key', second, undefined, []));
      assert.equal(await other.read('key'), undefined);
    });

    test('of concurrent writes on one version, one succeeds', async (t) => {
      const { client } = await createStore(t);
      const clients = [(await client()).schedules, (await client()).schedules];
      const written = await Promise.all(
        Array.from({ length: 20 }, (_, index) => clients[index % 2]?.write('key', 0, `text ${index}`, [])),
      );
      assert.equal(written.filter((version) => version !== undefined).length, 1);
    });

    test('a text is read back as it was written, except a lone surrogate', async (t) => {
      const { schedules } = await (await createStore(t)).client();
      const unusual = ['', ' ', 'a\0b', '\uFEFF\r\n\u2028', '€ 𝄞', '1', '1 2', 'x'.repeat(10_000), '\uD800'];
      for (const [index, text] of unusual.entries()) {
        await schedules.write(`key ${index}`, 0, text, [{ queue: 'queue', inMs: 0 }]);
        assert.equal((await schedules.read(`key ${index}`))?.text, text.toWellFormed());
      }
    });

    test('records are taken when they are due, the longest due first, up to the limit', async (t) => {
      const { client, until, now } = await createStore(t);
      const { schedules } = await client();
      await schedules.write('a-late', 0, 'late', [{ queue: 'queue', inMs: hourMs }]);
      await schedules.write('c-first', 0, 'first', [{ queue: 'queue', inMs: 0 }]);
      await schedules.write('b-second', 0, 'second', [{ queue: 'queue', inMs: 40 }]);
      const startedMs = now();
      await until(5_000, 'time passes', () => now() - startedMs > 50);

      assert.deepEqual(await schedules.count('queue'), { all: 3, due: 2 });
      const [first, ...none] = await schedules.take('queue', 1, hourMs);
      assert.deepEqual([first?.record?.text, none], ['first', []]);
      const taken = await schedules.take('queue', 10, hourMs);
      assert.deepEqual(textsOf(taken), ['second']);
      assert.deepEqual(await schedules.take('queue', 10, hourMs), []);
      assert.deepEqual(await schedules.take('other', 10, hourMs), []);
      assert.deepEqual(await schedules.count('queue'), { all: 3, due: 0 });
    });

    test('concurrent clients never take the same record', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).schedules, (await client()).schedules];
      const keys = Array.from({ length: 60 }, (_, index) => `record ${index}`);
      await Promise.all(keys.map((key) => one.write(key, 0, key, [{ queue: 'queue', inMs: 0 }])));
      const taken = await Promise.all([one, other, one, other].map((each) => each.take('queue', 20, hourMs)));
      assert.deepEqual(textsOf(taken.flat()).toSorted(), keys.toSorted());
    });

    test('a record is due again when its lease ends, unless the lease is extended', async (t) => {
      const { client, until } = await createStore(t);
      const [one, other] = [(await client()).schedules, (await client()).schedules];
      await writeDue(one, 'lost', 'kept');
      const leases = new Map((await one.take('queue', 10, 60)).map(({ key, lease }) => [key, lease]));
      const extended = await one.extend('queue', 'kept', leases.get('kept') ?? '', hourMs);
      assert.ok(extended);
      assert.equal(await one.extend('queue', 'kept', leases.get('kept') ?? '', hourMs), undefined);

      let taken = await other.take('queue', 10, hourMs);
      await until(5_000, 'the lease ends', async () => {
        taken = taken.length > 0 ? taken : await other.take('queue', 10, hourMs);
        return taken.length > 0;
      });
      assert.deepEqual(textsOf(taken), ['lost']);
      assert.equal(await one.extend('queue', 'lost', leases.get('lost') ?? '', hourMs), undefined);
    });

    test('the holder of a lease decides when the record is due again; others do not change a leased record', async (t) => {
      const { client } = await createStore(t);
      const [holder, other] = [(await client()).schedules, (await client()).schedules];
      await writeDue(holder, 'key');
      const [taken] = await holder.take('queue', 1, hourMs);
      await other.reschedule('key', { queue: 'queue', inMs: 0 });
      await other.reschedule('key', { queue: 'queue', inMs: undefined });
      const version = await other.write('key', taken?.record?.version ?? 0, 'changed', [
        { queue: 'queue', inMs: 0 },
      ]);
      assert.deepEqual(await other.take('queue', 1, hourMs), []);

      assert.equal(await holder.write('key', taken?.record?.version ?? 0, 'too late', []), undefined);
      assert.ok(
        await holder.write('key', version ?? 0, 'done', [{ queue: 'queue', inMs: 0, lease: taken?.lease }]),
      );
      const [again] = await other.take('queue', 1, 2 * hourMs);
      assert.equal(again?.record?.text, 'done');
      await holder.reschedule('key', { queue: 'queue', inMs: 0, lease: taken?.lease });
      assert.deepEqual(await holder.take('queue', 1, hourMs), [], 'the former lease has no effect');
      await other.reschedule('key', { queue: 'queue', inMs: undefined, lease: again?.lease });
      assert.deepEqual(await other.count('queue'), { all: 0, due: 0 });
    });

    test('a record has a due time in each of its queues', async (t) => {
      const { schedules } = await (await createStore(t)).client();
      const version = await schedules.write('key', 0, 'text', [
        { queue: 'one', inMs: 0 },
        { queue: 'other', inMs: hourMs },
      ]);
      assert.deepEqual(textsOf(await schedules.take('one', 1, hourMs)), ['text']);
      assert.deepEqual(await schedules.take('other', 1, hourMs), []);
      await schedules.write('key', version ?? 0, 'text', [{ queue: 'other', inMs: 0 }]);
      assert.deepEqual(textsOf(await schedules.take('other', 1, hourMs)), ['text']);
    });

    test('a record that was removed can still be taken, without its text', async (t) => {
      const { schedules } = await (await createStore(t)).client();
      const version = await schedules.write('key', 0, 'text', [{ queue: 'queue', inMs: 0 }]);
      await schedules.write('key', version ?? 0, undefined, []);
      const [taken] = await schedules.take('queue', 1, hourMs);
      assert.deepEqual([taken?.key, taken?.record], ['key', undefined]);
    });

    test('promoted records are due in the other queue, except leased ones', async (t) => {
      const { schedules } = await (await createStore(t)).client();
      const changes = [
        { queue: 'failed', inMs: 0 },
        { queue: 'queue', inMs: hourMs },
      ];
      await schedules.write('leased', 0, 'leased', [
        { queue: 'queue', inMs: 0 },
        { queue: 'failed', inMs: 0 },
      ]);
      await schedules.take('queue', 1, hourMs);
      for (const key of ['one', 'two', 'three']) await schedules.write(key, 0, key, changes);
      await schedules.write('elsewhere', 0, 'elsewhere', [{ queue: 'failed', inMs: 0 }]);

      await schedules.promote('failed', 'queue', 100);
      assert.deepEqual(await schedules.count('failed'), { all: 0, due: 0 });
      assert.deepEqual(textsOf(await schedules.take('queue', 10, hourMs)).toSorted(), [
        'one',
        'three',
        'two',
      ]);
    });

    test('at most as many records as the limit are promoted in each part of the store', async (t) => {
      const { schedules } = await (await createStore(t)).client();
      for (let index = 0; index < 30; index++)
        await schedules.write(`key ${index}`, 0, '', [
          { queue: 'failed', inMs: 0 },
          { queue: 'queue', inMs: hourMs },
        ]);
      await schedules.promote('failed', 'queue', 3);
      const { due } = await schedules.count('queue');
      assert.ok(due >= 1 && due <= 8, String(due));
    });

    test('the records of a queue can be listed, leased ones as well', async (t) => {
      const { schedules } = await (await createStore(t)).client();
      await writeDue(schedules, 'one', 'other');
      await schedules.take('queue', 1, hourMs);
      await schedules.write('elsewhere', 0, '', [{ queue: 'another', inMs: 0 }]);
      const listed = await schedules.list('queue', 100);
      assert.deepEqual(listed.map(({ key, record }) => [key, record.text]).toSorted(), [
        ['one', 'one'],
        ['other', 'other'],
      ]);
      assert.ok((await schedules.list('queue', 1)).length >= 1);
      assert.deepEqual(await schedules.list('nothing', 100), []);
    });

    test('records and queues belong to their prefix', async (t) => {
      const { client, otherClient } = await createStore(t);
      const [ours, theirs] = [(await client()).schedules, (await otherClient()).schedules];
      await writeDue(ours, 'key');
      assert.equal(await theirs.read('key'), undefined);
      assert.deepEqual(await theirs.take('queue', 1, hourMs), []);
      assert.deepEqual(await theirs.count('queue'), { all: 0, due: 0 });
    });
  });
}

async function writeDue(schedules: Schedules, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await schedules.write(key, 0, key, [{ queue: 'queue', inMs: 0 }]);
}

const textsOf = (taken: Awaited<ReturnType<Schedules['take']>>) => taken.map(({ record }) => record?.text);
