/** The table of subscriptions, which is also the queue of due work, on all databases and with two instances. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createSubscriptionTable, type SubscriptionWrite } from '../../src/store/subscriptions.ts';
import { createWebhookMessageTable, type MessageNote } from '../../src/store/webhook-messages.ts';
import { databaseKinds } from '../kit/databases.ts';
import { until } from '../kit/within.ts';

const hour = 3_600_000;
const reads = [{ tenant: 'tenant', environment: 'sandbox' }];

const write = (id: string, changes: Partial<SubscriptionWrite> = {}): SubscriptionWrite => ({
  id,
  tenant: 'tenant',
  environment: 'sandbox',
  paymentId: `payment of ${id}`,
  text: '{}',
  isFailing: false,
  deadSinceMs: undefined,
  failedEndpoint: undefined,
  ...changes,
});

for (const [name, { skip, open }] of Object.entries(databaseKinds)) {
  const openTables = async (t: TestContext) => {
    const [database, otherDatabase] = await open(t);
    const [table, other] = [createSubscriptionTable(database), createSubscriptionTable(otherDatabase)];
    const take = async (from = table, limit = 100, leaseMs = hour) =>
      (await from.take('read', reads, limit, leaseMs)).map(({ id }) => id).toSorted();
    return { table, other, take, messages: createWebhookMessageTable(database) };
  };

  describe(`the table of subscriptions on ${name}`, { skip }, () => {
    test('writes a subscription only over the revision that was read, and both instances read it', async (t) => {
      const { table, other } = await openTables(t);
      assert.equal(await table.read('a'), undefined);
      assert.equal(await table.write(undefined, write('a', { text: 'first' })), true);
      const first = await other.read('a');
      assert.deepEqual([first?.text, first?.tenant, first?.environment], ['first', 'tenant', 'sandbox']);
      assert.equal(await other.write(undefined, write('a')), false, 'there is one');
      assert.equal(await other.write(first?.revision, write('a', { text: 'second' })), true);
      assert.equal(await table.write(first?.revision, write('a', { text: 'lost' })), false);
      const second = await table.read('a');
      assert.equal(second?.text, 'second');
      assert.equal(await table.remove(first?.revision ?? '', write('a')), false);
      assert.equal(await table.remove(second?.revision ?? '', write('a')), true);
      assert.equal(await other.write(second?.revision, write('a')), false, 'there is none');
      assert.equal(await table.read('a'), undefined);
    });

    test('lets one of the concurrent writes over a revision succeed', async (t) => {
      const { table, other } = await openTables(t);
      const insert = (from: typeof table) =>
        Array.from({ length: 10 }, (_, index) => from.write(undefined, write('a', { text: String(index) })));
      const inserted = await Promise.all([...insert(table), ...insert(other)]);
      assert.equal(inserted.filter(Boolean).length, 1);
      const known = (await table.read('a'))?.revision;
      const update = (from: typeof table) => Array.from({ length: 10 }, () => from.write(known, write('a')));
      const updated = await Promise.all([...update(table), ...update(other)]);
      assert.equal(updated.filter(Boolean).length, 1);
    });

    test('sends nothing to the database but the names of the queues', async (t) => {
      const [database] = await open(t);
      const sent: unknown[] = [];
      const table = createSubscriptionTable({
        ...database,
        query(sql, values) {
          sent.push(sql, values);
          return database.query(sql, values);
        },
      });
      const subscription = { tenant: 'tenant', environment: 'sandbox', headers: ['Bearer token'] };
      await table.take('read', [subscription], 1, hour);
      assert.match(JSON.stringify(sent), /sandbox/);
      assert.doesNotMatch(JSON.stringify(sent), /Bearer/);
    });

    test('stores the others when the database refuses one', async (t) => {
      const { table } = await openTables(t);
      const results = await Promise.allSettled([
        table.write(undefined, write('a')),
        table.write(undefined, write('refused', { paymentId: null as never })),
        table.write(undefined, write('b')),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      );
      assert.ok((await table.read('a')) && (await table.read('b')));
      const rescheduled = await Promise.allSettled([
        table.reschedule('read', 'a', { inMs: 1e300 }),
        table.reschedule('read', 'b', { inMs: 0 }),
      ]);
      assert.equal(rescheduled[1]?.status, 'fulfilled');
    });

    test('gives due work to one instance, the longest due first, up to the limit of each queue', async (t) => {
      const { table, other, take } = await openTables(t);
      for (const id of ['a', 'b', 'c']) await table.write(undefined, write(id, { read: { inMs: 0 } }));
      await table.write(undefined, write('later', { read: { inMs: hour } }));
      await table.write(undefined, write('never'));
      await table.write(undefined, write('of another', { tenant: 'another', read: { inMs: 0 } }));
      await table.write(undefined, write('elsewhere', { environment: 'production', read: { inMs: 0 } }));
      const both = [...reads, { tenant: 'another', environment: 'sandbox' }];
      const first = await table.take('read', both, 2, hour);
      assert.deepEqual(first.map(({ id }) => id).toSorted(), ['a', 'b', 'of another']);
      assert.deepEqual(await take(other), ['c']);
      assert.deepEqual(await take(), []);
    });

    test('gives no work to two instances that ask at the same time', async (t) => {
      const { table, other, take } = await openTables(t);
      const ids = Array.from({ length: 100 }, (_, index) => `id ${index}`);
      await Promise.all(ids.map((id) => table.write(undefined, write(id, { read: { inMs: 0 } }))));
      const taken = await Promise.all(
        Array.from({ length: 30 }, (_, index) => take(index % 2 ? table : other, 7)),
      );
      const all = taken.flat();
      assert.equal(new Set(all).size, all.length);
      assert.deepEqual([...all, ...(await take())].toSorted(), ids.toSorted());
    });

    test('makes work due again when its lease ends, unless the lease is extended', async (t) => {
      const { table, other, take } = await openTables(t);
      for (const id of ['short', 'long']) await table.write(undefined, write(id, { read: { inMs: 0 } }));
      const taken = await table.take('read', reads, 10, 1);
      const long = taken.find(({ id }) => id === 'long');
      assert.ok(long);
      const leases = [long, { id: 'short', lease: 'of another' }];
      assert.deepEqual(await table.extend('read', leases, hour), new Set(['long']));
      await until(5_000, 'the short lease ends', async () => (await take(other)).includes('short'));
      assert.deepEqual(await take(other), []);
    });

    test('lets only the holder of a lease change when work is due', async (t) => {
      const { table, other, take } = await openTables(t);
      await table.write(undefined, write('a', { read: { inMs: 0 }, delivery: { inMs: hour } }));
      const [taken] = await table.take('read', reads, 1, hour);
      assert.ok(taken);
      const { lease } = taken;
      await other.reschedule('read', 'a', { inMs: 0 });
      await other.reschedule('read', 'a', { inMs: 0, lease: 'of another' });
      const known = (await other.read('a'))?.revision;
      assert.equal(await other.write(known, write('a', { text: 'changed', read: { inMs: 0 } })), true);
      assert.deepEqual(await take(other), [], 'the text has changed, the lease has not');
      assert.equal((await table.read('a'))?.text, 'changed');
      await table.reschedule('read', 'a', { inMs: hour, lease });
      assert.deepEqual(await take(other), ['a'], 'it has become due under the lease');
      await table.reschedule('read', 'a', { inMs: 0, lease });
      assert.deepEqual(await take(), [], 'its lease has ended');
    });

    test('makes leased work due at the end of its lease, once, if it has become due under it', async (t) => {
      const { table, other } = await openTables(t);
      const deliveries = [{ tenant: 'tenant' }];
      const takeOne = async () => (await table.take('delivery', deliveries, 1, hour))[0];
      await table.write(undefined, write('a', { delivery: { inMs: 0 } }));
      const first = await takeOne();
      await other.reschedule('delivery', 'a', { inMs: hour });
      await table.reschedule('delivery', 'a', { inMs: hour, lease: first?.lease });
      assert.equal(await takeOne(), undefined, 'it was to be due later');
      await table.reschedule('delivery', 'a', { inMs: 0 });
      const second = await takeOne();
      assert.ok(second);
      await other.write(second.revision, write('a', { delivery: { inMs: 0 } }));
      const known = (await table.read('a'))?.revision;
      await table.write(known, write('a', { delivery: { inMs: undefined, lease: second.lease } }));
      const third = await takeOne();
      assert.ok(third);
      await table.reschedule('delivery', 'a', { inMs: undefined, lease: third.lease });
      assert.equal(await takeOne(), undefined, 'the work has begun after it was due');
    });

    test('promotes no message that is due or being sent', async (t) => {
      const { table } = await openTables(t);
      const failed = (inMs: number) => ({ failedEndpoint: 'endpoint', delivery: { inMs } });
      await table.write(undefined, write('sent', failed(0)));
      await table.take('delivery', [{ tenant: 'tenant' }], 1, hour);
      await table.write(undefined, write('due', failed(0)));
      await table.write(undefined, write('later', failed(2 * hour)));
      await table.promote('endpoint', 1);
      const taken = await table.take('delivery', [{ tenant: 'tenant' }], 10, hour);
      assert.deepEqual(taken.map(({ id }) => id).toSorted(), ['due', 'later']);
    });

    test('ends a lease together with a write', async (t) => {
      const { table, other, take } = await openTables(t);
      await table.write(undefined, write('a', { read: { inMs: 0 } }));
      const [taken] = await table.take('read', reads, 1, hour);
      assert.ok(taken);
      const { revision, lease } = taken;
      await table.write(revision, write('a', { read: { inMs: undefined, lease }, delivery: { inMs: 0 } }));
      assert.deepEqual(await take(other), []);
      const deliveries = await other.take('delivery', [{ tenant: 'tenant' }], 1, hour);
      assert.deepEqual(
        deliveries.map(({ id }) => id),
        ['a'],
      );
    });

    test('reschedules one subscription twice in one turn, and the last time counts', async (t) => {
      const { table, take } = await openTables(t);
      await table.write(undefined, write('a', { read: { inMs: hour } }));
      await Promise.all([
        table.reschedule('read', 'a', { inMs: 0 }),
        table.reschedule('read', 'a', { inMs: hour }),
      ]);
      assert.deepEqual(await take(), []);
    });

    test('makes the messages due that an endpoint has not accepted, those first that are due next', async (t) => {
      const { table } = await openTables(t);
      const deliveries = [{ tenant: 'tenant' }];
      const failed = (inMs: number) => ({ failedEndpoint: 'endpoint', delivery: { inMs } });
      await table.write(undefined, write('third', failed(3 * hour)));
      await table.write(undefined, write('second', failed(2 * hour)));
      await table.write(undefined, write('first', failed(hour)));
      await table.write(undefined, write('other', { failedEndpoint: 'other', delivery: { inMs: hour } }));
      await table.promote('endpoint', 2);
      const taken = await table.take('delivery', deliveries, 10, hour);
      assert.deepEqual(taken.map(({ id }) => id).toSorted(), ['first', 'second']);
      await table.promote('endpoint', 1);
      assert.deepEqual(
        (await table.take('delivery', deliveries, 10, hour)).map(({ id }) => id),
        ['third'],
      );
    });

    test('keeps the messages, with what became of them, until they are old', async (t) => {
      const { table, messages } = await openTables(t);
      const message = (id: string, sequence: number, changes: Partial<MessageNote> = {}): MessageNote => ({
        id,
        client: 'client',
        endpoint: 'https://tpp.example',
        sequence,
        transactionStatus: 'ACTC',
        scaStatus: undefined,
        state: 'undelivered',
        attempts: 0,
        why: undefined,
        ...changes,
      });
      const revisionOf = async (id: string) => (await table.read(id))?.revision ?? '';
      await table.write(undefined, write('a', { delivery: { inMs: hour } }));
      const first = await revisionOf('a');
      assert.equal(await table.write(first, write('a', { message: message('one', 1) })), true);
      assert.equal(await table.write(first, write('a', { message: message('lost', 1) })), false);
      const failed = message('one', 1, { attempts: 3, why: 'it hangs' });
      await table.write(await revisionOf('a'), write('a', { message: failed }));
      await table.write(await revisionOf('a'), write('a', { message: message('two', 2) }));
      const delivered = message('two', 2, { state: 'delivered', attempts: 2 });
      assert.equal(await table.remove(first, write('a'), delivered), false);
      assert.equal(await table.remove(await revisionOf('a'), write('a'), delivered), true);
      const stored = await messages.ofPayment('payment of a', 'sandbox', 'tenant');
      assert.deepEqual(
        stored.map(({ id, state, attempts, why }) => [id, state, attempts, why]),
        [
          ['one', 'replaced', 3, 'it hangs'],
          ['two', 'delivered', 2, undefined],
        ],
      );
      assert.deepEqual(await messages.ofPayment('payment of a', 'production', 'tenant'), []);
      assert.deepEqual(await messages.ofPayment('payment of a', 'sandbox', 'another'), []);
      // An instance that has lost the race, or an operator, says that it has ended.
      await table.write(undefined, write('a'));
      await table.write(await revisionOf('a'), write('a', { message: { ...delivered, state: 'ended' } }));
      assert.equal((await messages.ofPayment('payment of a', 'sandbox', 'tenant'))[1]?.state, 'delivered');
      const [figures, ...others] = await messages.figures();
      assert.deepEqual(others, []);
      const { lastDeliveredMs = 0, ...counts } = figures ?? assert.fail('no figures');
      const expected = { delivered: 1, undelivered: 0, dead: 0, failedAttempts: 4 };
      assert.deepEqual(counts, { tenant: 'tenant', endpoint: 'https://tpp.example', ...expected });
      assert.ok(Math.abs(Date.now() - lastDeliveredMs) < hour);
      assert.equal(await messages.deleteOld(hour, 10), 0);
      assert.equal(await messages.deleteOld(-hour, 10), 2);
    });

    test('lists and counts subscriptions by tenant, payment and state, and deletes those that are dead for long', async (t) => {
      const { table } = await openTables(t);
      const read = { inMs: hour };
      await table.write(undefined, write('active', { read }));
      await table.write(undefined, write('failing', { isFailing: true, read: { inMs: 0 } }));
      await table.write(undefined, write('undelivered', { delivery: { inMs: hour }, read }));
      await table.write(undefined, write('dead', { deadSinceMs: Date.now() - hour }));
      await table.write(undefined, write('of another', { tenant: 'another', read }));
      const idsOf = async (conditions: Partial<Parameters<typeof table.list>[0]>) =>
        (await table.list({ tenants: ['tenant'], ...conditions }, 10)).map(({ id }) => id).toSorted();
      for (const state of ['active', 'failing', 'undelivered', 'dead'] as const)
        assert.deepEqual(await idsOf({ state }), [state]);
      assert.deepEqual(await idsOf({}), ['active', 'dead', 'failing', 'undelivered']);
      assert.deepEqual(await idsOf({ tenants: ['another', 'nobody'] }), ['of another']);
      assert.deepEqual(await idsOf({ tenants: [] }), []);
      assert.deepEqual(await idsOf({ paymentId: 'payment of dead' }), ['dead']);
      assert.deepEqual(
        await table.count(),
        new Map([
          ['tenant', { active: 3, overdue: 1, failing: 1, undelivered: 1, dead: 1 }],
          ['another', { active: 1, overdue: 0, failing: 0, undelivered: 0, dead: 0 }],
        ]),
      );
      assert.deepEqual([await table.countOf('tenant'), await table.countOf('nobody')], [4, 0]);
      assert.equal(await table.deleteDead(2 * hour, 10), 0);
      assert.equal(await table.deleteDead(hour / 2, 10), 1);
      assert.equal(await table.read('dead'), undefined);
    });
  });
}
