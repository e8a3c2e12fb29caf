/** The deletion of what has expired: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Client } from 'pg';
import type { Database } from '../../src/store/database.ts';
import { deleteInBatches } from '../../src/store/delete-in-batches.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { createPaymentTable } from '../../src/store/payments.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { databaseKinds } from '../kit/databases.ts';
import { explained } from '../kit/pages-read.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { until } from '../kit/within.ts';

const windowMs = 10_000;

/** More than one statement deletes, and of each millisecond many. */
const many = 2_500;
const numbers = (count: number) =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;

interface Given {
  readonly count: number;
  /** Of the oldest row; each following hundred is a millisecond younger. */
  readonly ageMs: number;
  readonly name?: string;
}

/** Released writes. */
const insertWrites = (database: Database, { count, ageMs, name = 'write' }: Given) =>
  database.query(
    `INSERT INTO ledger (request_id, tenant, operation, payment, step, attempt, instance, path, fingerprint_request,
       fingerprint_content, is_first_factor, follows_released, claimed_at, ended_at)
     ${numbers(count)} SELECT $2 || '-' || n, 'shop', 'initiatePayment', '', 'released', $2 || '-' || n, 'one', '/', '', '', false, false,
       (SELECT now_ms()) - $1 + n / 100, (SELECT now_ms()) - $1 + n / 100 FROM numbers`,
    [ageMs, name],
  );

const insertPayments = (database: Database, { count, ageMs, name = 'payment' }: Given) =>
  database.query(
    `INSERT INTO payment (payment_id, environment, tenant, is_permanent, created_at, used_at)
     ${numbers(count)} SELECT $2 || '-' || n, 'sandbox', 'shop', false, (SELECT now_ms()) - $1 + n / 100, (SELECT now_ms()) - $1 + n / 100 FROM numbers`,
    [ageMs, name],
  );

const writesIn = async (database: Database) =>
  (await database.query('SELECT attempt FROM ledger ORDER BY attempt')).map(({ attempt }) => attempt);

/** One run, as the gateway does it. */
const deleteWrites = (database: Database) =>
  deleteInBatches((limit, from) => createLedgerTable(database).deleteExpired(windowMs, limit, from));
const deletePayments = (database: Database) =>
  deleteInBatches((limit, from) => createPaymentTable(database).deleteExpired(windowMs, limit, from));

for (const [name, { skip, open }] of Object.entries(databaseKinds))
  describe(`the deletion in ${name}`, { skip }, () => {
    async function start(t: TestContext): Promise<Database> {
      const [database] = await open(t);
      return database;
    }

    test('deletes all writes that have expired in one run, and passes over those that must stay', async (t) => {
      const database = await start(t);
      await insertWrites(database, { count: many, ageMs: 60_000 });
      await insertWrites(database, { count: 1, ageMs: 0, name: 'fresh' });
      const stays = ['write-1', 'write-1000', 'write-1001', 'write-1900'];
      await database.query(
        `UPDATE ledger SET step = 'in-doubt', ended_at = NULL, why = 'no answer' WHERE attempt IN ('write-1', 'write-1000')`,
      );
      await database.query(
        `UPDATE ledger SET step = 'sending', ended_at = NULL WHERE attempt = 'write-1001'`,
      );
      await database.query(`UPDATE ledger SET ended_at = now_ms() WHERE attempt = 'write-1900'`);
      await deleteWrites(database);
      assert.deepEqual(await writesIn(database), ['fresh-1', ...stays]);
    });

    test('deletes a write that was in doubt in the run after it is resolved and has expired', async (t) => {
      const database = await start(t);
      await insertWrites(database, { count: many, ageMs: 60_000 });
      await database.query(`UPDATE ledger SET why = 'no answer' WHERE attempt = 'write-1'`);
      await deleteWrites(database);
      assert.deepEqual(await writesIn(database), ['write-1']);
      await database.query(`UPDATE ledger SET why = NULL WHERE attempt = 'write-1'`);
      await insertWrites(database, { count: 1, ageMs: 50_000, name: 'younger' });
      await deleteWrites(database);
      assert.deepEqual(await writesIn(database), []);
    });

    test('deletes all payments that have expired in one run, and no standing order', async (t) => {
      const database = await start(t);
      await insertPayments(database, { count: many, ageMs: 60_000 });
      await insertPayments(database, { count: 1, ageMs: 0, name: 'fresh' });
      await database.query(`UPDATE payment SET is_permanent = true WHERE payment_id = 'payment-1000'`);
      await deletePayments(database);
      const left = await database.query('SELECT payment_id FROM payment ORDER BY payment_id');
      assert.deepEqual(
        left.map(({ payment_id }) => payment_id),
        ['fresh-1', 'payment-1000'],
      );
    });

    test('does not look at what is older than where it goes on', async (t) => {
      const database = await start(t);
      await insertWrites(database, { count: 100, ageMs: 60_000, name: 'older' });
      await insertWrites(database, { count: 100, ageMs: 30_000, name: 'younger' });
      const [{ claimed_at: from } = {}] = await database.query(
        `SELECT min(claimed_at) AS claimed_at FROM ledger WHERE attempt LIKE 'younger-%'`,
      );
      const { rows, newest } = await createLedgerTable(database).deleteExpired(windowMs, 1_000, Number(from));
      assert.deepEqual([rows, newest], [100, Number(from) + 1]);
    });
  });

describe('the deletion in PostgreSQL, beside other statements', { skip: skipWithoutPostgres }, () => {
  async function start(t: TestContext) {
    const url = await newMigratedPostgres();
    const database = connectPostgres(url);
    t.after(() => database.close());
    const client = new Client(url);
    await client.connect();
    t.after(() => client.end());
    return { database, client };
  }

  test('leaves a write that a new attempt claims at this moment', async (t) => {
    const { database, client } = await start(t);
    await insertWrites(database, { count: 2, ageMs: 60_000 });
    await client.query('BEGIN');
    await client.query(
      `UPDATE ledger SET step = 'claimed', claimed_at = now_ms(), ended_at = NULL WHERE attempt = 'write-1'`,
    );
    const deleted = deleteWrites(database);
    await until(5_000, 'the deletion waits for the row', async () => {
      const waiting = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return waiting.length > 0;
    });
    await client.query('COMMIT');
    await deleted;
    assert.deepEqual(await writesIn(database), ['write-1']);
  });

  for (const [what, insert, tableOf] of [
    ['writes', insertWrites, createLedgerTable],
    ['payments', insertPayments, createPaymentTable],
  ] as const)
    test(`reads the same number of pages for the last ${what} as for the first ones, and none of those that stay`, async (t) => {
      const { database, client } = await start(t);
      await client.query('ALTER TABLE ledger SET (autovacuum_enabled = off)');
      await client.query('ALTER TABLE payment SET (autovacuum_enabled = off)');
      await insert(database, { count: 10_000, ageMs: 60_000 });
      await insert(database, { count: 10_000, ageMs: 0, name: 'fresh' });
      const counted = explained(database);
      const pagesOf = async (limit: number, from: number) => {
        await tableOf(counted.database).deleteExpired(windowMs, limit, from);
        return counted.pages();
      };
      const first = await pagesOf(100, 0);
      const { newest } = await tableOf(database).deleteExpired(windowMs, 9_000, 0);
      const last = await pagesOf(100, newest);
      assert.ok(first > 100 && last < first * 1.2, `${first} pages, then ${last}`);
      const rest = await tableOf(database).deleteExpired(windowMs, 9_000, newest);
      assert.ok(rest.rows > 0);
      const none = await pagesOf(100, rest.newest);
      assert.ok(none < 20, `${none} pages if nothing has expired`);
    });
});
