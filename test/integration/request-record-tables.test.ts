/** The statements for records of requests: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { rowOf } from '../../src/request-records/request-rows.ts';
import type { Database } from '../../src/store/database.ts';
import { createPaymentHistoryTable } from '../../src/store/payment-history.ts';
import { createRequestRecordTable, type RecordConditions } from '../../src/store/request-records.ts';
import type { RequestRecord } from '../../src/telemetry/request-record.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { databaseKinds } from '../kit/databases.ts';
import { explained } from '../kit/pages-read.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { failedRecord, requestRecord } from '../kit/request-records.ts';

const baseMs = Date.UTC(2026, 0, 31, 12);

for (const [name, { skip, open }] of Object.entries(databaseKinds))
  describe(`records of requests in ${name}`, { skip }, () => {
    async function start(t: TestContext) {
      const [database] = await open(t);
      const table = createRequestRecordTable(database);
      const store = (...records: readonly RequestRecord[]) =>
        table.insert(records.map((record) => rowOf(record, 'gateway-1')));
      const find = async (conditions: Partial<RecordConditions>, limit = 50) => {
        const { rows, searchedFromMs } = await table.find(
          { fromMs: 0, toMs: baseMs + 1_000_000, ...conditions },
          limit,
        );
        return { ids: rows.map(({ request_id: id }) => String(id)), searchedFromMs };
      };
      return { database, table, store, find };
    }

    test('are found by each of their fields', async (t) => {
      const { store, find } = await start(t);
      const { request } = requestRecord();
      assert.ok(request);
      const refused = {
        ...requestRecord({ status: 401, durationMs: 900 }, [
          { what: 'bank-error', code: 'CERTIFICATE_REVOKED' },
        ]),
        request: {
          ...request,
          client: 'kiosk',
          tenantId: 'other',
          product: 'bulk-payments/a',
          paymentId: 'p1',
        },
        environment: 'production',
      };
      const failed = { ...failedRecord('CIRCUIT_OPEN', 503), durationMs: 1 };
      const paid = requestRecord({ servedFrom: 'ledger' });
      await store(refused, failed, paid);
      const byRefused: readonly Partial<RecordConditions>[] = [
        { requestId: String(refused.requestId).toUpperCase() },
        { paymentId: 'p1' },
        { tenants: ['other'] },
        { client: 'kiosk' },
        { environment: 'production' },
        { product: 'bulk-payments/a' },
        { status: 401 },
        { outcome: 'refused-by-bank' },
        { bankError: 'CERTIFICATE_REVOKED' },
        { error: '401' },
        { minDurationMs: 500 },
        { servedFrom: 'bank' },
      ];
      for (const conditions of byRefused)
        assert.deepEqual((await find(conditions)).ids, [refused.requestId], JSON.stringify(conditions));
      assert.deepEqual((await find({ error: 'CIRCUIT_OPEN' })).ids, [failed.requestId]);
      assert.deepEqual((await find({ error: 'any', status: 503 })).ids, [failed.requestId]);
      assert.equal((await find({ error: 'any' })).ids.length, 2);
      assert.deepEqual((await find({ outcome: 'succeeded' })).ids, [paid.requestId]);
      assert.deepEqual((await find({ tenants: ['other'], client: 'shop' })).ids, []);
    });

    test('are listed in pages, the newest first, and those of one millisecond together', async (t) => {
      const { store, find } = await start(t);
      const records = [0, 1, 2, 2, 2, 3].map((ms) => requestRecord({ receivedAtMs: baseMs + ms }));
      await store(...records);
      const ids = records.map(({ requestId }) => requestId).toReversed();
      const first = await find({}, 2);
      assert.deepEqual(first, { ids: ids.slice(0, 4), searchedFromMs: baseMs + 2 });
      const next = await find({ toMs: first.searchedFromMs }, 2);
      assert.deepEqual(next, { ids: ids.slice(4), searchedFromMs: 0 });
    });

    test('that are stored again have the later events', async (t) => {
      const { table, store } = await start(t);
      const record = requestRecord({ status: 504 }, [{ what: 'recorded', as: 'in-doubt' }]);
      await store(record);
      const events = [...record.events, { afterMs: 9, event: { what: 'late-answer', status: 201 } as const }];
      await store({ ...record, events });
      const conditions = { requestId: String(record.requestId), fromMs: 0, toMs: baseMs + 1 };
      const { rows } = await table.find(conditions, 10);
      assert.equal(rows.length, 1);
      assert.match(String(rows[0]?.events), /late-answer/);
    });

    test('that the database refuses do not prevent the others', async (t) => {
      const { table } = await start(t);
      const [good, bad] = [requestRecord(), requestRecord()].map((record) => rowOf(record, 'gateway-1'));
      assert.ok(good && bad);
      const refused = await table.insert([{ ...bad, request_id: null }, good]);
      assert.deepEqual([...refused.keys()], [0]);
    });

    test('expire, the oldest first, with the figures of their time', async (t) => {
      const { database, table, store } = await start(t);
      const now = Date.now();
      await store(...[3, 2, 1].map((hours) => requestRecord({ receivedAtMs: now - hours * 3_600_000 })));
      const count = async (what: string) =>
        Number((await database.query(`SELECT count(*) AS rows FROM ${what}`))[0]?.rows);
      assert.equal((await table.deleteRecords(90 * 60_000, 1)).rows, 1);
      assert.equal((await table.deleteRecords(90 * 60_000, 10)).rows, 1);
      assert.equal(await count('request_record'), 1);
      const minute = Math.floor(now / 60_000) * 60;
      const counts = { requests: 1, refused: 0, failed: 0, hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 };
      for (const at of [minute, minute - 86_400])
        await table.putFigures([{ minute: at, instance: 'one', ...counts, durations: '[]' }]);
      const share = { tenant: 'one', instance: 'gateway-1', bytes: 5, not_stored: 2 };
      await table.putShares([
        { ...share, period: Math.floor(now / 600_000) },
        { ...share, period: 1 },
      ]);
      await table.deleteFigures(3_600_000, 600_000);
      assert.deepEqual([await count('minute_figure'), await count('record_share')], [1, 1]);
      assert.equal(await table.countNotStored(0, 1e9, undefined), 2);
      assert.equal(await table.countNotStored(0, 1e9, ['other']), 0);
    });

    test('share what each tenant uses among all instances', async (t) => {
      const { table } = await start(t);
      const row = { period: 7, tenant: 'one', instance: 'gateway-1', bytes: 100, not_stored: 1 };
      const others = [{ tenant: 'other' }, { period: 6 }].map((other) => ({
        ...row,
        ...other,
        instance: 'gateway-2',
      }));
      await table.putShares([row, ...others]);
      await table.putShares([row, { ...row, instance: 'gateway-2', bytes: 30 }]); // again, as after a lost answer
      const written = await table.putShares([{ ...row, bytes: 150, not_stored: 4 }]);
      assert.deepEqual(
        written.map(({ period, tenant, bytes_of_others: bytes }) => [Number(period), tenant, Number(bytes)]),
        [[7, 'one', 30]],
      );
      assert.equal(await table.countNotStored(7, 7, ['one']), 5);
    });

    test('whose figures the database never accepts do not prevent the other figures', async (t) => {
      const { table } = await start(t);
      const counts = { requests: 1, refused: 0, failed: 0, hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 };
      const row = { minute: 60, instance: 'gateway-1', ...counts, durations: '[]' };
      const rows = [
        { ...row, durations: null },
        { ...row, minute: 120 },
      ];
      await assert.rejects(table.putFigures(rows), { effect: 'none-ever' });
      assert.deepEqual(
        (await table.figures(0, 200)).map(({ minute }) => Number(minute)),
        [120],
      );
    });

    test('count errors of all instances and minutes together, with the last one', async (t) => {
      const { table } = await start(t);
      const row = {
        ...{ minute: 60, instance: 'one', code: '', bank_status: '401', bank_error: 'TOKEN_INVALID' },
        ...{ client: 'shop', tenant: 'shop', operation: 'initiatePayment', environment: 'sandbox' },
        ...{ requests: 2, last_at: 1_700_000_000_001, last_request_id: 'first' },
      };
      await table.putErrors([row]);
      await table.putErrors([{ ...row, requests: 3 }]); // the same minute again
      const last = { last_at: 1_700_000_000_009, last_request_id: randomUUID() };
      await table.putErrors([{ ...row, instance: 'two', minute: 120, requests: 5, ...last }]);
      const [sum, ...others] = await table.errors(0, 10);
      assert.equal(others.length, 0);
      assert.deepEqual([Number(sum?.requests), sum?.bank_error], [8, 'TOKEN_INVALID']);
      assert.equal(sum?.last, `${last.last_at} ${last.last_request_id}`);
      assert.deepEqual(
        (await table.errors(100, 10)).map(({ requests }) => Number(requests)),
        [5],
      );
    });
  });

/** Records of many requests with one X-Request-ID for one payment, which have succeeded. @param count of those of each of two tenants */
async function insertEqualRecords(database: Database, count: number): Promise<void> {
  await database.execute(
    `INSERT INTO request_record (instance, number, received_at, request_id, operation, tenant, payment_id, status, outcome, events)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${2 * count})
     SELECT 'gateway-1', n, n, CASE WHEN n % 2 = 0 THEN 'one' ELSE 'other-' || n END, 'getPaymentStatus',
       CASE WHEN n % 2 = 0 THEN 'shop' ELSE 'rival' END, CASE WHEN n % 2 = 0 THEN 'p1' ELSE 'p-' || n END, 200, 'succeeded', '[]'
     FROM numbers`,
    60_000,
  );
}

/** Searches that find one page among many records with the same id, or nothing. */
const searchesById: readonly Partial<RecordConditions>[] = [
  ...[{}, { tenants: ['shop'] }, { tenants: ['rival'] }, { tenants: ['rival', 'nobody'] }].flatMap(
    (tenants) => [
      { requestId: 'one', ...tenants },
      { paymentId: 'p1', ...tenants },
    ],
  ),
];

test('a search by an id reads the index of the id only, in the order of time, in SQLite', async (t) => {
  const database = await newGatewayDatabase(t, 'sqlite');
  await insertEqualRecords(database, 500);
  const plans: string[] = [];
  const measured: Database = {
    ...database,
    async query(sql, values) {
      const plan = await database.query(`EXPLAIN QUERY PLAN ${sql}`, values);
      plans.push(plan.map(({ detail }) => detail).join('; '));
      return database.query(sql, values);
    },
  };
  const table = createRequestRecordTable(measured);
  for (const conditions of searchesById) await table.find({ fromMs: 0, toMs: 1e6, ...conditions }, 50);
  assert.equal(plans.length, 2 * searchesById.length);
  for (const plan of plans) {
    assert.match(
      plan,
      /INDEX request_record_(request_id|payment) \(\S+ AND received_at>\? AND received_at<\?\)/,
    );
    assert.doesNotMatch(plan, /FOR ORDER BY/);
  }
  plans.length = 0;
  await createPaymentHistoryTable(measured).records('p1', 'shop', 50);
  assert.deepEqual(plans, [
    'SEARCH request_record USING INDEX request_record_remarkable (payment_id=? AND tenant=?)',
  ]);
});

test('the history of a payment reads none of its many status reads in PostgreSQL', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const database = await newGatewayDatabase(t, 'postgres');
  await insertEqualRecords(database, 10_000);
  const { database: measured, pages } = explained(database);
  await createPaymentHistoryTable(measured).records('p1', 'shop', 50);
  assert.ok(pages() < 50);
});
