/**
 * `npm run bench:storage`: how PostgreSQL behaves when the ledger is large: the time of a claim, the time of deleting a day, and the space
 * on disk before and after. It starts a server of its own, and needs about 2 kB on disk for each row.
 */

import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import type { Database } from '../src/store/database.ts';
import { deleteInBatches } from '../src/store/delete-in-batches.ts';
import { createLedgerTable } from '../src/store/ledger.ts';
import { migrate } from '../src/store/migrations.ts';
import { connectPostgres } from '../src/store/postgres.ts';
import { answer, mark, newClaim, sentTo } from '../test/kit/ledger-claims.ts';
import { explained } from '../test/kit/pages-read.ts';
import { startPostgres } from '../test/kit/postgres.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import { until } from '../test/kit/within.ts';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { percentile } from './measure/statistics.ts';

const { values } = parseArgs({
  options: {
    /** The numbers of rows at which claims are measured; the last one is also that of the deletion. */
    rows: { type: 'string', default: '100000,1000000,10000000' },
    /** The rows of a day: so many are deleted, and then inserted again. */
    day: { type: 'string', default: '1000000' },
    claims: { type: 'string', default: '5000' },
    payments: { type: 'string', default: '20000' },
  },
});
const steps = values.rows.split(',').map(Number);
const [day, claims, payments] = [Number(values.day), Number(values.claims), Number(values.payments)];
const dayMs = 86_400_000;
const days = Math.ceil((steps.at(-1) ?? 0) / day);
const warmUpClaims = 500;
const concurrency = 32;

/**
 * Claims, marks and answers in batches of 1,000, as under load, without bodies; each batch and each of its steps is a transaction. In the
 * order of their times, `stepMs` apart.
 */
const addPayments = `
  CREATE PROCEDURE add_payments(total integer, already integer, step_ms double precision, age_ms double precision) LANGUAGE plpgsql AS $$
  DECLARE
    begun bigint := now_ms() - age_ms;
    ids text[];
  BEGIN
    FOR batch IN 0 .. total / 1000 - 1 LOOP
      ids := ARRAY(SELECT gen_random_uuid()::text FROM generate_series(1, 1000));
      INSERT INTO ledger (request_id, tenant, operation, payment, step, attempt, instance, path, fingerprint_request, fingerprint_content,
        is_first_factor, follows_released, claimed_at)
      SELECT id, 'tenant-' || (number % 50), 'initiatePayment', '', 'claimed', gen_random_uuid(), '${randomUUID()}',
        '/berlingroup/v1/payments/sepa-credit-transfers', encode(sha256(id::bytea), 'base64'), encode(sha256(reverse(id)::bytea), 'base64'),
        false, false, begun + ((already + batch * 1000 + number) * step_ms)::bigint
      FROM unnest(ids) WITH ORDINALITY AS input (id, number);
      COMMIT;
      UPDATE ledger SET step = 'sending', environment = 'production', marked_at = claimed_at + 1, listened_until = claimed_at + 60000
      WHERE request_id = ANY (ids);
      COMMIT;
      UPDATE ledger SET step = 'answered', status = 201, headers = '[["Content-Type","application/json"]]', outcome = 'accepted',
        ended_at = claimed_at + 200, payment_id = reverse(request_id)
      WHERE request_id = ANY (ids);
      INSERT INTO payment (payment_id, environment, tenant, initiated_as, is_permanent, created_at, used_at)
      SELECT payment_id, environment, tenant, 'payments/sepa-credit-transfers', false, ended_at, ended_at
      FROM ledger WHERE request_id = ANY (ids);
      COMMIT;
    END LOOP;
  END $$`;

await withCleanup(async (life) => {
  const server = await startPostgres(
    life,
    'shared_buffers=1GB',
    'max_wal_size=8GB',
    'checkpoint_timeout=30min',
  );
  const sized: SizedLedger[] = [];
  for (const rows of steps) sized.push(await openLedger(life, server.url, rows));
  const claimRows = await compareClaims(sized);
  console.log(
    `\n${formatTable(['rows', 'claim p50 ms', 'p99 ms', 'p50 ms without fsync', 'p99 ms'], claimRows)}`,
  );

  const largest = sized.at(-1);
  if (!largest) throw new Error('--rows must name a number');
  console.log(`\n${await deleteDay(largest)}`);
  for (const { admin, ledger, rows } of sized)
    console.log(`\n${rows} rows: ${await costOfPayments(admin, ledger)}`);
});

interface SizedLedger {
  readonly rows: number;
  readonly admin: Client;
  readonly database: Database;
  readonly ledger: ReturnType<typeof createLedgerTable>;
  /** Adds rows behind those that there are: the first one of all began `days` days ago. */
  add(count: number): Promise<void>;
}

/** A database with so many rows of payments that have an answer. */
async function openLedger(life: TestScope, serverUrl: string, rows: number): Promise<SizedLedger> {
  const url = new URL(serverUrl);
  url.pathname = `/rows_${rows}`;
  const server = new Client(serverUrl);
  await server.connect();
  await server.query(`CREATE DATABASE rows_${rows}`);
  await server.end();
  const setUp = connectPostgres(url.href, { connections: 1 });
  await migrate(setUp);
  await setUp.close();
  const database = connectPostgres(url.href);
  life.after(() => database.close());
  const admin = new Client(url.href);
  await admin.connect();
  life.after(() => admin.end());
  await admin.query('SET statement_timeout = 0; SET lock_timeout = 0; SET synchronous_commit = off');
  await admin.query(addPayments);
  let stored = 0;
  const add = async (count: number) => {
    await setFsync(admin, 'off');
    const startedAtMs = performance.now();
    await admin.query('CALL add_payments($1, $2, $3, $4)', [count, stored, dayMs / day, days * dayMs]);
    stored += count;
    await admin.query('VACUUM ANALYZE ledger, payment');
    await setFsync(admin, 'on');
    console.error(`${count} rows stored in ${((performance.now() - startedAtMs) / 1_000).toFixed(0)} s`);
  };
  await add(rows);
  return { rows, admin, database, ledger: createLedgerTable(database), add };
}

async function setFsync(admin: Client, state: 'on' | 'off'): Promise<void> {
  await admin.query(`ALTER SYSTEM SET fsync = ${state}`);
  await admin.query('SELECT pg_reload_conf()');
  await admin.query('CHECKPOINT');
}

/** One claim in each database, then the next one in each: a machine that is busy for a while delays all of them. @returns rows of the table */
async function compareClaims(sized: readonly SizedLedger[]): Promise<readonly (readonly string[])[]> {
  const cells = sized.map(({ rows }) => [String(rows)]);
  // The load of a database has displaced others from memory: their indexes are read again.
  for (const { admin } of sized) await admin.query('SELECT count(request_id) FROM ledger');
  for (const fsync of ['on', 'off'] as const) {
    for (const { admin } of sized) await setFsync(admin, fsync);
    const times = sized.map((): number[] => []);
    for (let done = 0; done < (claims + warmUpClaims) * sized.length; done += 1) {
      // In changing orders, so that none always comes after the same one.
      const round = Math.floor(done / sized.length);
      const index = (done + round) % sized.length;
      const startedAtMs = performance.now();
      await sized[index]?.ledger.claim(newClaim());
      if (round >= warmUpClaims) times[index]?.push(performance.now() - startedAtMs);
    }
    for (const [index, own] of times.entries())
      cells[index]?.push(...[0.5, 0.99].map((part) => percentile(own, part).toFixed(2)));
  }
  for (const { admin } of sized) {
    await setFsync(admin, 'on');
    await admin.query(`DELETE FROM ledger WHERE ended_at IS NULL`);
    await admin.query('VACUUM ledger');
  }
  return cells;
}

/** Deletes the first day, and stores another one. */
async function deleteDay({ admin, database, ledger, add }: SizedLedger): Promise<string> {
  const sizes: (readonly string[])[] = [];
  let { wal } = await usageOf(admin);
  const noteSizes = async (when: string) => {
    const usage = await usageOf(admin);
    sizes.push([when, ...(await sizesOf(admin)), mebibytes(usage.wal - wal)]);
    wal = usage.wal;
    console.error(sizes.at(-1)?.join(' | '));
  };
  await noteSizes('before');
  const firstPages = await pagesOfDeletion(database, days - 1, 0);
  const { runs, reached } = await timeDeletion(ledger, days - 1);
  const lastPages = await pagesOfDeletion(database, days - 2, reached);
  await noteSizes('a day deleted');
  await admin.query('VACUUM ledger');
  await noteSizes('and vacuumed');
  await add(day);
  await noteSizes('the next day stored');
  return [
    formatTable(
      ['', 'ledger rows', 'table', 'indexes', 'payment rows', 'table', 'indexes', 'WAL until then'],
      sizes,
    ),
    `\nThe first deletion of 1,000 rows reads ${firstPages} pages, the last one ${lastPages}.`,
    formatTable(['rows deleted in a run', 'first batch ms', 'p50 ms', 'p99 ms'], runs),
  ].join('\n');
}

/** As the gateway deletes, until nothing has expired. @returns a row of the table for each run */
async function timeDeletion(
  ledger: ReturnType<typeof createLedgerTable>,
  keptDays: number,
): Promise<{ readonly runs: readonly (readonly string[])[]; readonly reached: number }> {
  const runs: (readonly string[])[] = [];
  let reached = 0;
  for (let deleted = -1; deleted !== 0; ) {
    deleted = 0;
    const times: number[] = [];
    await deleteInBatches(async (limit, from) => {
      const startedAtMs = performance.now();
      const done = await ledger.deleteExpired(keptDays * dayMs, limit, from);
      times.push(performance.now() - startedAtMs);
      deleted += done.rows;
      reached = Math.max(reached, done.newest);
      return done;
    });
    const [first = Number.NaN] = times;
    runs.push([
      String(deleted),
      ...[first, percentile(times, 0.5), percentile(times, 0.99)].map((ms) => ms.toFixed(1)),
    ]);
  }
  return { runs, reached };
}

/** Deletes a batch. */
async function pagesOfDeletion(database: Database, keptDays: number, from: number): Promise<number> {
  const counted = explained(database);
  await createLedgerTable(counted.database).deleteExpired(keptDays * dayMs, 1_000, from);
  return counted.pages();
}

async function sizesOf(admin: Client): Promise<readonly string[]> {
  const cells: string[] = [];
  for (const table of ['ledger', 'payment']) {
    const { rows } = await admin.query<Record<string, string>>(
      `SELECT (SELECT count(*) FROM ${table}) AS count, pg_table_size('${table}') AS bytes, pg_indexes_size('${table}') AS indexes`,
    );
    const [{ count, bytes, indexes } = {}] = rows;
    cells.push(String(count), ...[bytes, indexes].map((size) => mebibytes(Number(size))));
  }
  return cells;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(0)} MiB`;
}

/** Whole payments through the statements of the gateway. */
async function costOfPayments(admin: Client, ledger: SizedLedger['ledger']): Promise<string> {
  const before = await usageOf(admin);
  let started = 0;
  const pay = async () => {
    while (started++ < payments) {
      const claim = newClaim();
      await ledger.claim(claim);
      await ledger.mark(mark(claim));
      const created = { ...answer.created, paymentId: randomUUID() };
      await ledger.recordAnswer(sentTo(claim), { ...answer, body: Buffer.alloc(450, 'x'), created });
    }
  };
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: concurrency }, pay));
  const perSecond = (1_000 * payments) / (performance.now() - startedAtMs);
  // Each session reports its statistics a second after it has changed something, and when it is idle.
  await until(
    20_000,
    'all updates are counted',
    async () => (await usageOf(admin)).updates >= before.updates + 2 * payments,
  );
  const after = await usageOf(admin);
  const hot = (after.hot - before.hot) / (after.updates - before.updates);
  return [
    `${payments} payments, ${perSecond.toFixed(0)} per second`,
    `${((after.wal - before.wal) / payments).toFixed(0)} bytes of WAL each`,
    `${(100 * hot).toFixed(0)} % of the updates in place`,
  ].join(', ');
}

async function usageOf(admin: Client): Promise<{ wal: number; updates: number; hot: number }> {
  const { rows } = await admin.query<Record<string, string>>(
    `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS wal, n_tup_upd AS updates, n_tup_hot_upd AS hot
     FROM pg_stat_user_tables WHERE relname = 'ledger'`,
  );
  return { wal: Number(rows[0]?.wal), updates: Number(rows[0]?.updates), hot: Number(rows[0]?.hot) };
}
