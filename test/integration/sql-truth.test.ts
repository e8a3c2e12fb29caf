/**
 * The contracts of the tables besides the ledger, payments among them: the same tests on SQLite in memory, on a SQLite file, and on
 * PostgreSQL.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { createActiveEnvironmentTable } from '../../src/store/active-environment.ts';
import { createAuditTable, type StoredAuditRecord } from '../../src/store/audit.ts';
import { createHoldTable } from '../../src/store/holds.ts';
import { createLedgerTable, type LedgerTable, type NewPayment } from '../../src/store/ledger.ts';
import { createPaymentTable } from '../../src/store/payments.ts';
import { databaseKinds } from '../kit/databases.ts';
import type { TestScope } from '../kit/test-scope.ts';

const sepa = 'payments/sepa-credit-transfers';

/** Initiates a payment: the ledger stores it with the answer. */
async function initiate(
  ledger: LedgerTable,
  created: Partial<NewPayment>,
  { tenant = 'shop', environment = 'sandbox' } = {},
): Promise<string> {
  const sent = {
    ...{ tenant, environment, operation: 'initiatePayment', payment: '', requestId: randomUUID() },
    ...{ attempt: randomUUID(), instance: 'one', path: `/berlingroup/v1/${sepa}` },
    ...{
      fingerprintKey: undefined,
      fingerprintRequest: 'request',
      fingerprintContent: 'content',
      isFirstFactor: false,
    },
    ...{ listenMs: 60_000, markedAtMs: performance.now() },
  };
  await ledger.claim(sent);
  await ledger.mark({ ...sent, identityRevision: 0 });
  return ledger.recordAnswer(sent, {
    ...{ status: 201, headers: '[]', body: Buffer.from('{}'), outcome: 'accepted', why: undefined },
    created: { paymentId: 'p1', initiatedAs: sepa, isPermanent: false, ...created },
  });
}

for (const [name, { skip, open }] of Object.entries(databaseKinds)) {
  describe(`payments in ${name}`, { skip }, () => {
    async function start(t: TestScope) {
      const [database, other] = await open(t);
      const [payments, onOther] = [createPaymentTable(database), createPaymentTable(other)];
      return { database, ledger: createLedgerTable(database), payments, onOther };
    }

    test('are found by id, each with its environment and tenant', async (t) => {
      const { ledger, onOther } = await start(t);
      await initiate(ledger, {});
      await initiate(
        ledger,
        { bankIds: '{"payment":"p%31"}' },
        { tenant: 'rival', environment: 'production' },
      );
      await initiate(ledger, { paymentId: 'p2' });
      const ids = ['p1', 'p2', 'none', 'p1'];
      const found = await Promise.all(ids.map(onOther.find));
      assert.deepEqual(
        // Two of one millisecond have no order.
        found.map((all) =>
          all
            .map(({ environment, tenant, bankIds }) => [environment, tenant, bankIds])
            .toSorted()
            .toReversed(),
        ),
        [
          [
            ['sandbox', 'shop', undefined],
            ['production', 'rival', '{"payment":"p%31"}'],
          ],
          [['sandbox', 'shop', undefined]],
          [],
          [
            ['sandbox', 'shop', undefined],
            ['production', 'rival', '{"payment":"p%31"}'],
          ],
        ],
      );
    });

    test('with an id that the database cannot store are unknown, and others in the batch are found', async (t) => {
      const { ledger, payments } = await start(t);
      await initiate(ledger, {});
      const [unknown, known] = await Promise.all([payments.find('p\0'), payments.find('p1')]);
      assert.deepEqual([unknown, known?.length], [[], 1]);
    });

    test('keep what is known of a payment when the bank gives its id again', async (t) => {
      const { ledger, payments } = await start(t);
      await initiate(ledger, { bankIds: '{"authorisations":["a%3Db"]}', isPermanent: true });
      await initiate(ledger, { initiatedAs: 'payments/instant-sepa-credit-transfers' });
      const [payment] = await payments.find('p1');
      assert.deepEqual(
        [payment?.initiatedAs, payment?.bankIds, payment?.isPermanent],
        [undefined, '{"authorisations":["a%3Db"]}', true],
      );
      assert.equal(
        await initiate(ledger, {}, { tenant: 'rival' }),
        'in-doubt',
        'it belongs to another tenant',
      );
      assert.deepEqual(
        (await payments.find('p1')).map(({ tenant }) => tenant),
        ['shop'],
      );
    });

    test('get new ids from one of two instances that add some at once', async (t) => {
      const { ledger, payments, onOther } = await start(t);
      await initiate(ledger, {});
      const key = { paymentId: 'p1', environment: 'sandbox', tenant: 'shop' };
      const added = await Promise.all([
        payments.replaceBankIds(key, undefined, '{"authorisations":["1"]}'),
        onOther.replaceBankIds(key, undefined, '{"authorisations":["2"]}'),
      ]);
      assert.deepEqual(added.toSorted(), [false, true]);
      const [payment] = await payments.find('p1');
      assert.equal(await onOther.replaceBankIds({ ...key, tenant: 'rival' }, payment?.bankIds, '{}'), false);
      assert.equal(await onOther.replaceBankIds(key, payment?.bankIds, '{}'), true);
    });

    test('expire after their last use, in batches, and standing orders never', async (t) => {
      const { database, ledger, payments, onOther } = await start(t);
      const ids = ['used', 'old-1', 'old-2', 'old-3', 'standing'];
      for (const paymentId of ids)
        await initiate(ledger, { paymentId, isPermanent: paymentId === 'standing' });
      await database.query('UPDATE payment SET used_at = used_at - 10000');
      const used = { paymentId: 'used', environment: 'sandbox', tenant: 'shop' };
      await Promise.all([payments.touch(used), payments.touch(used), onOther.touch(used)]);
      assert.equal((await payments.deleteExpired(9_000, 2)).rows, 2);
      assert.equal((await payments.deleteExpired(9_000, 2)).rows, 1);
      assert.equal((await payments.deleteExpired(9_000, 2)).rows, 0);
      const found = await Promise.all(ids.map(payments.find));
      assert.deepEqual(
        found.flat().map(({ paymentId }) => paymentId),
        ['used', 'standing'],
      );
      assert.ok((found[4]?.[0]?.unusedMs ?? 0) >= 10_000);
    });
  });

  describe(`the active environment in ${name}`, { skip }, () => {
    test('is the configured one in a new database, and stays when another one is configured', async (t) => {
      const [one, other] = (await open(t)).map(createActiveEnvironmentTable);
      assert.equal(await one?.read(), undefined);
      const first = await Promise.all([one?.readOr('sandbox'), other?.readOr('sandbox')]);
      assert.deepEqual(first, Array(2).fill({ environment: 'sandbox', version: 1 }));
      assert.deepEqual(await other?.readOr('production'), { environment: 'sandbox', version: 1 });
    });

    test('is switched by one of two instances that do so at once', async (t) => {
      const [one, other] = (await open(t)).map(createActiveEnvironmentTable);
      await one?.readOr('sandbox');
      const switched = await Promise.all([one?.switchTo('production', 1), other?.switchTo('other', 1)]);
      const [made] = switched.filter((each) => each !== undefined);
      assert.equal(switched.filter((each) => each === undefined).length, 1);
      assert.equal(made?.version, 2);
      assert.deepEqual(await one?.read(), made);
    });
  });

  describe(`holds in ${name}`, { skip }, () => {
    const hold = {
      environment: 'sandbox',
      lane: 'write',
      as: 'open',
      reason: 'maintenance',
      leftMs: 60_000,
    } as const;

    test('are seen by all instances until they end or are released', async (t) => {
      const [one, other] = (await open(t)).map(createHoldTable);
      await one?.hold({ ...hold, as: 'closed' });
      await other?.hold(hold);
      await one?.hold({ ...hold, lane: 'status' });
      await one?.hold({ ...hold, lane: 'read', leftMs: -1 });
      const lanes = async () => (await other?.read())?.map(({ lane, as, reason }) => [lane, as, reason]);
      assert.deepEqual(await lanes(), [
        ['status', 'open', 'maintenance'],
        ['write', 'open', 'maintenance'],
      ]);
      const [, write] = (await one?.read()) ?? [];
      assert.ok(write && write.leftMs > 0 && write.leftMs <= 60_000);
      await one?.release(hold);
      await one?.deleteEnded();
      assert.deepEqual(await lanes(), [['status', 'open', 'maintenance']]);
    });
  });

  describe(`the audit log in ${name}`, { skip }, () => {
    const record = (number: number, who = 'admin'): StoredAuditRecord => ({
      ...{ number, at: '2026-01-01T00:00:00.000Z', who, action: 'switch environment', outcome: 'switched' },
      ...{ details: '{"environment":"sandbox"}', previous: `hash ${number - 1}`, hash: `hash ${number}` },
    });

    test('has each number once, on two instances', async (t) => {
      const [one, other] = (await open(t)).map(createAuditTable);
      assert.equal(await one?.insert(record(1)), true);
      const both = await Promise.all([one?.insert(record(2, 'one')), other?.insert(record(2, 'other'))]);
      assert.deepEqual(both.toSorted(), [false, true]);
      assert.equal((await one?.newest(10))?.length, 2);
    });

    test('returns records as they were inserted: the newest ones, and page by page', async (t) => {
      const [one, other] = (await open(t)).map(createAuditTable);
      const all = Array.from({ length: 5 }, (_, index) => record(index + 1));
      for (const each of all) await one?.insert(each);
      assert.deepEqual(await other?.newest(2), all.toReversed().slice(0, 2));
      assert.deepEqual(await other?.following(0, 3), all.slice(0, 3));
      assert.deepEqual(await other?.following(3, 3), all.slice(3));
      assert.deepEqual(await other?.following(5, 3), []);
    });
  });
}
