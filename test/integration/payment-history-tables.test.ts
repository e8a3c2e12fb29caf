/** The statements for payments that operators see: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createAuditTable } from '../../src/store/audit.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import {
  type AgedStatus,
  createPaymentHistoryTable,
  type ListPosition,
} from '../../src/store/payment-history.ts';
import { createPaymentTable } from '../../src/store/payments.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { databaseKinds } from '../kit/databases.ts';
import { answer, newClaim, send, sentTo } from '../kit/ledger-claims.ts';
import { explained } from '../kit/pages-read.ts';
import { insertPayments, insertRecord } from '../kit/payment-rows.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { ask } from '../kit/replicated-postgres.ts';

const seen = (status: string, ageMs: number, more: Partial<AgedStatus> = {}): AgedStatus => ({
  ...{ paymentId: 'p1', environment: 'sandbox', status, ageMs, seenBy: 'status read', requestId: 'request' },
  ...more,
});

for (const [name, { skip, open }] of Object.entries(databaseKinds))
  describe(`payments for operators in ${name}`, { skip }, () => {
    async function start(t: TestContext) {
      const [database, other] = await open(t);
      const history = createPaymentHistoryTable(database);
      const statuses = async (paymentId = 'p1') =>
        (await history.statuses(paymentId, 'sandbox')).changes.map(({ status }) => status);
      return { database, history, onOther: createPaymentHistoryTable(other), statuses };
    }

    test('keep each change of the status, in the order in which instances have seen them', async (t) => {
      const { database, history, onOther, statuses } = await start(t);
      await insertPayments(database, { paymentId: 'p1', ageMs: 60_000 });
      await history.insertStatuses([seen('RCVD', 50_000, { seenBy: 'initiation' })]);
      await history.insertStatuses([seen('ACTC', 40_000), seen('RCVD', 30_000)]); // both with one statement
      assert.deepEqual(await statuses(), ['RCVD', 'ACTC', 'RCVD']);
      await onOther.insertStatuses([seen('RCVD', 29_000)]); // no change
      await onOther.insertStatuses([seen('ACSC', 10_000)]);
      await history.insertStatuses([seen('RCVD', 20_000), seen('ACSC', 15_000)]); // stored late
      assert.deepEqual(await statuses(), ['RCVD', 'ACTC', 'RCVD', 'ACSC']);
      const [first] = (await history.statuses('p1', 'sandbox')).changes;
      assert.deepEqual([first?.seenBy, first?.requestId], ['initiation', 'request']);
      const payment = await onOther.find('p1', 'sandbox');
      assert.deepEqual([payment?.status, payment?.isInDoubt], ['ACSC', false]);
    });

    test('have no status of a payment that is not stored, and lose it with the payment', async (t) => {
      const { database, history, statuses } = await start(t);
      await insertPayments(database, { paymentId: 'p1', ageMs: 60_000 });
      const others = [seen('RCVD', 1, { paymentId: 'p2' }), seen('RCVD', 1, { environment: 'production' })];
      assert.equal((await history.insertStatuses([seen('RCVD', 1), ...others])).size, 0);
      assert.deepEqual(await statuses('p2'), []);
      assert.deepEqual((await history.statuses('p1', 'production')).changes, []);
      assert.deepEqual(await statuses(), ['RCVD']);
      await createPaymentTable(database).deleteExpired(10_000, 100);
      assert.deepEqual(await statuses(), []);
    });

    test('keep the first and the newest statuses of a bank whose status alternates for ever', async (t) => {
      const { database, history, onOther, statuses } = await start(t);
      await insertPayments(database, { paymentId: 'p1', ageMs: 60_000 });
      await insertPayments(database, { paymentId: 'p2', ageMs: 60_000 });
      let ageMs = 50_000;
      const next = (status: string) => {
        ageMs -= 10;
        return seen(status, ageMs);
      };
      const alternate = (changes: number) =>
        Array.from({ length: changes }, (_, index) => next(index % 2 === 0 ? 'RCVD' : 'ACTC'));
      await history.insertStatuses([next('PDNG'), ...alternate(100)]);
      await history.insertStatuses(alternate(99));
      const all = await history.statuses('p1', 'sandbox');
      assert.deepEqual([all.changes.length, all.complete], [200, true]);
      await onOther.insertStatuses([...alternate(301), next('ACCC')]);
      await history.insertStatuses([next('ACSC'), seen('RCVD', 40_000, { paymentId: 'p2' })]);
      const { changes, complete } = await history.statuses('p1', 'sandbox');
      assert.equal(complete, false);
      assert.deepEqual(changes.slice(0, 50), all.changes.slice(0, 50));
      assert.deepEqual(
        changes.slice(-3).map(({ status }) => status),
        ['RCVD', 'ACCC', 'ACSC'],
      );
      assert.deepEqual(await statuses('p2'), ['RCVD']);
      await history.insertStatuses(alternate(300).map((change) => ({ ...change, paymentId: 'p2' }))); // at once
      const stored = await database.query('SELECT count(*) AS rows FROM payment_status GROUP BY payment_id');
      assert.deepEqual(
        stored.map(({ rows }) => Number(rows)),
        [201, 201],
      );
    });

    test('store the other statuses if the database refuses one', async (t) => {
      const { database, history, statuses } = await start(t);
      await insertPayments(database, { paymentId: 'p1', ageMs: 60_000 });
      const refused = await history.insertStatuses([
        seen('RCVD', 2, { requestId: database.dialect === 'sqlite' ? undefined : '\0' }),
        seen('ACSC', 1),
      ]);
      assert.deepEqual([...refused.keys()], database.dialect === 'sqlite' ? [] : [0]);
      assert.equal((await statuses()).at(-1), 'ACSC');
    });

    test('are listed newest first, page by page, by tenant, environment and time', async (t) => {
      const { database, history } = await start(t);
      for (const [index, tenant] of ['shop', 'shop', 'rival', 'shop'].entries())
        await insertPayments(database, { paymentId: `p${index}`, tenant, ageMs: 4_000 - index * 1_000 });
      await insertPayments(database, { paymentId: 'p0', environment: 'production', ageMs: 60_000 });
      const listed = async (conditions: Parameters<typeof history.list>[0], limit = 10) =>
        (await history.list(conditions, limit)).map(
          ({ paymentId, environment }) => `${paymentId} ${environment}`,
        );
      const all = ['p3 sandbox', 'p2 sandbox', 'p1 sandbox', 'p0 sandbox', 'p0 production'];
      assert.deepEqual(await listed({}), all);
      assert.deepEqual(await listed({ after: (await history.list({}, 2)).at(-1) }, 2), all.slice(2, 4));
      assert.deepEqual(await listed({ after: (await history.list({}, 4)).at(-1) }), all.slice(4));
      assert.deepEqual(await listed({ tenant: 'rival' }), ['p2 sandbox']);
      assert.deepEqual(await listed({ environment: 'production' }), ['p0 production']);
      const { createdAt = 0 } = (await history.find('p2', 'sandbox')) ?? {};
      assert.deepEqual(await listed({ createdFrom: createdAt }), ['p3 sandbox', 'p2 sandbox']);
      assert.deepEqual(await listed({ createdTo: createdAt }, 1), ['p2 sandbox']);
    });

    test('lose none of many with the same time at the end of a page', async (t) => {
      const { database, history } = await start(t);
      await insertPayments(database, { paymentId: 'p', count: 25, ageMs: 1_000 });
      await database.query('UPDATE payment SET created_at = 5');
      const found = new Set<string>();
      for (let after: ListPosition | undefined; ; ) {
        const page = await history.list({ after }, 10);
        if (page.length === 0) break;
        for (const { paymentId } of page) found.add(paymentId);
        after = page.at(-1);
      }
      assert.equal(found.size, 25);
    });

    test('show which writes are in doubt or running, and which payments have one', async (t) => {
      const { database, history } = await start(t);
      const ledger = createLedgerTable(database);
      const { created } = answer;
      for (const paymentId of ['p1', 'p2']) {
        const claim = newClaim();
        await send(ledger, claim);
        await ledger.recordAnswer(sentTo(claim), { ...answer, created: { ...created, paymentId } });
      }
      const cancellation = newClaim({ operation: 'cancelPayment', payment: 'p1' });
      await send(ledger, cancellation);
      assert.deepEqual(
        (await history.openWrites('p1', 'sandbox')).map(({ operation, why }) => [operation, why]),
        [['cancelPayment', undefined]],
      );
      assert.deepEqual(await history.list({ onlyInDoubt: true }, 10), []);
      await ledger.markInDoubt(sentTo(cancellation), { why: 'no answer' });
      const initiation = newClaim();
      await send(ledger, initiation);
      await ledger.markInDoubt(sentTo(initiation), { why: 'no answer' });
      assert.equal(await history.countInitiationsInDoubt(), 1);
      assert.deepEqual(
        (await history.openWrites('p1', 'sandbox')).map(({ requestId, why }) => [requestId, why]),
        [[cancellation.requestId, 'no answer']],
      );
      assert.deepEqual(await history.openWrites('p2', 'sandbox'), []);
      const doubts = await history.list({ onlyInDoubt: true }, 10);
      assert.deepEqual(
        doubts.map(({ paymentId }) => paymentId),
        ['p1'],
      );
      const inDoubt = (await history.list({}, 10)).map(({ paymentId, isInDoubt }) => [paymentId, isInDoubt]);
      assert.deepEqual(
        new Map(inDoubt as [string, boolean][]),
        new Map([
          ['p1', true],
          ['p2', false],
        ]),
      );
      await ledger.resolveHappened(cancellation);
      assert.deepEqual(await history.openWrites('p1', 'sandbox'), []);
    });

    test('have the records of their writes, and of reads that failed, of their tenant', async (t) => {
      const { database, history } = await start(t);
      const rows = [
        { operation: 'initiatePayment' },
        { operation: 'getPaymentStatus' },
        { operation: 'getPaymentStatus', outcome: 'failed', status: 503, error: 'CIRCUIT_OPEN', why: 'open' },
        { operation: 'cancelPayment', tenant: 'rival' },
        { operation: 'cancelPayment', outcome: 'refused-by-bank', status: 405, bankError: 'SERVICE_INVALID' },
        { operation: 'cancelPayment', paymentId: 'p2' },
      ];
      for (const [index, row] of rows.entries()) await insertRecord(database, { number: index, ...row });
      const found = await history.records('p1', 'shop', 10);
      assert.deepEqual(
        found.map(({ receivedAt, operation, status, outcome, error, bankError, why }) => [
          ...[receivedAt, operation, status, outcome, error, bankError, why],
        ]),
        [
          [4, 'cancelPayment', 405, 'refused-by-bank', undefined, 'SERVICE_INVALID', undefined],
          [2, 'getPaymentStatus', 503, 'failed', 'CIRCUIT_OPEN', undefined, 'open'],
          [0, 'initiatePayment', 201, 'succeeded', undefined, undefined, undefined],
        ],
      );
      assert.deepEqual((await history.records('p1', 'shop', 2)).length, 2);
    });

    test('have the audit records that name them, also if somebody has changed the column', async (t) => {
      const { database } = await start(t);
      const audit = createAuditTable(database);
      const details = [{ paymentId: 'p1', reason: 'one' }, { paymentId: 'p2' }, {}, { paymentId: 'p\0' }];
      for (const [index, one] of details.entries())
        await audit.insert({
          ...{ number: index + 1, at: '', who: 'olga', action: 'act', outcome: 'done' },
          ...{ details: JSON.stringify(one), previous: '', hash: '' },
        });
      await database.query(`UPDATE audit SET payment_id = 'p1' WHERE number = 3`);
      assert.deepEqual(
        (await audit.ofPayment('p1', 10)).map(({ number }) => number),
        [1],
      );
    });
  });

test('a page of the list reads little of many payments in PostgreSQL', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const url = await newMigratedPostgres();
  const count = 60_000;
  await ask(
    url,
    `SET statement_timeout = 0;
     INSERT INTO payment (payment_id, environment, tenant, is_permanent, created_at, used_at)
     SELECT 'p-' || n, CASE WHEN n % 1000 = 0 THEN 'sandbox' ELSE 'production' END, 'tenant-' || n % 100, false, n, n
     FROM generate_series(1, ${count}) AS n;
     INSERT INTO payment_status (payment_id, environment, status, seen_at, seen_by)
     SELECT payment_id, environment, 'ACSC', created_at, 'poll' FROM payment;
     ANALYZE payment; ANALYZE payment_status;`,
  );
  const database = connectPostgres(url);
  t.after(() => database.close());
  const { database: measured, pages } = explained(database);
  const history = createPaymentHistoryTable(measured);
  const after = { createdAt: count / 2, paymentId: `p-${count / 2}`, environment: 'production' };
  for (const conditions of [
    {},
    { after },
    { tenant: 'tenant-7' },
    { tenant: 'tenant-7', after },
    { environment: 'sandbox' },
    { onlyInDoubt: true },
    { createdFrom: 100, createdTo: 200 },
  ]) {
    await history.list(conditions, 50);
    const read = pages();
    assert.ok(read < 1_000, `${JSON.stringify(conditions)}: ${read} pages`);
  }
});

/** While the table is small, PostgreSQL may take such an index for a look-up by id, and keeps this plan when it is large. */
test('no index that a look-up of one payment could use begins with a column that many payments share', {
  skip: skipWithoutPostgres,
}, async () => {
  const indexes = await ask(
    await newMigratedPostgres(),
    `SELECT indexdef FROM pg_indexes WHERE tablename = 'payment'`,
  );
  assert.ok(indexes.length >= 4);
  for (const { indexdef } of indexes) assert.doesNotMatch(String(indexdef), /\((?:tenant|environment)[,)]/);
});
