/**
 * `npm run bench:search`: records of requests in a SQLite file and in PostgreSQL: how fast they are stored at full speed, what they take on
 * disk, how long a search in them takes, and for how long their deletion delays other statements. About 1.2 kB on disk for each record.
 */

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { RequestEvent } from '../src/request/request-events.ts';
import { rowOf } from '../src/request-records/request-rows.ts';
import { type Database, hasNoEffect } from '../src/store/database.ts';
import { deleteInBatches } from '../src/store/delete-in-batches.ts';
import { migrate } from '../src/store/migrations.ts';
import { connectPostgres } from '../src/store/postgres.ts';
import { createRequestRecordTable, type RecordConditions } from '../src/store/request-records.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import { startPostgres } from '../test/kit/postgres.ts';
import { failedRecord, requestRecord } from '../test/kit/request-records.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import { until } from '../test/kit/within.ts';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    /** Of a day with so many records, this part is deleted. */
    deleted: { type: 'string', default: '100000' },
    databases: { type: 'string', default: 'sqlite,postgres' },
  },
});
const [total, deleted] = [Number(values.records), Number(values.deleted)];
const dayMs = 86_400_000;
const recordsPerWrite = 250;
const stepMs = dayMs / total;

for (const name of values.databases.split(','))
  await withCleanup(async (life) => {
    const { database, bytes } = name === 'sqlite' ? openFile(life) : await openServer(life);
    await migrate(database);
    console.log(`\n${name}: ${total} records of a day`);
    await measure(database, bytes);
  });

function openFile(life: TestScope) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-'));
  const file = join(folder, 'state.db');
  const database = openSqlite(file);
  life.after(async () => {
    await database.close();
    rmSync(folder, { recursive: true });
  });
  return { database, bytes: async () => statSync(file).size };
}

async function openServer(life: TestScope) {
  const server = await startPostgres(life);
  const database = connectPostgres(server.url);
  life.after(() => database.close());
  const bytes = async () => {
    const [row] = await database.query(`SELECT pg_total_relation_size('request_record') AS bytes`);
    return Number(row?.bytes);
  };
  return { database, bytes };
}

async function measure(database: Database, bytes: () => Promise<number>): Promise<void> {
  const table = createRequestRecordTable(database);
  const beginMs = Date.now() - dayMs;
  const emptyBytes = await bytes();
  const wanted = { requestId: '', paymentId: '' };
  const longest = { ms: 0 };
  const startedMs = performance.now();
  const startCpu = process.cpuUsage();
  for (let index = 0; index < total; index += recordsPerWrite) {
    const records = Array.from({ length: recordsPerWrite }, (_, at) =>
      sampleRecord(beginMs + (index + at) * stepMs, index + at),
    );
    const rows = records.map((record) => rowOf(record, `gateway-${(index / recordsPerWrite) % 10}`));
    const row = rows[0];
    if (index === Math.floor(total / 2 / recordsPerWrite) * recordsPerWrite && row)
      Object.assign(wanted, { requestId: row.request_id, paymentId: row.payment_id });
    const beganMs = performance.now();
    await table.insert(rows);
    longest.ms = Math.max(longest.ms, performance.now() - beganMs);
  }
  const { user, system } = process.cpuUsage(startCpu);
  const seconds = (performance.now() - startedMs) / 1_000;
  console.log(
    `stored: ${(total / seconds).toFixed(0)} records/s, ${((user + system) / total).toFixed(1)} µs of CPU in this process for each, ` +
      `longest write of ${recordsPerWrite}: ${longest.ms.toFixed(0)} ms`,
  );
  console.log(`on disk: ${(((await bytes()) - emptyBytes) / total).toFixed(0)} bytes for each record`);
  if (database.dialect === 'postgres') await analyze(database);
  await measureSearches(table, wanted);
  await measureDeletion(database);
}

/** Waits while autovacuum works on the table. */
async function analyze(database: Database): Promise<void> {
  await until(600_000, 'the table is analysed', () =>
    database.execute('ANALYZE request_record', 600_000).then(
      () => true,
      (thrown: unknown) => {
        if (!hasNoEffect(thrown)) throw thrown;
        return false;
      },
    ),
  );
}

async function measureSearches(
  table: ReturnType<typeof createRequestRecordTable>,
  { requestId, paymentId }: { readonly requestId: string; readonly paymentId: string },
): Promise<void> {
  const rows: string[][] = [];
  const searches: Readonly<Record<string, Partial<RecordConditions>>> = {
    'X-Request-ID': { requestId },
    'unknown X-Request-ID': { requestId: randomUUID() },
    payment: { paymentId },
    tenant: { tenants: ['tenant-3'] },
    'tenant, long ago': { tenants: ['tenant-3'], toMs: Date.now() - dayMs * 0.9 },
    error: { error: 'CIRCUIT_OPEN' },
    'code of the bank': { bankError: 'CERTIFICATE_REVOKED' },
    'nothing matches': { client: 'nobody' },
  };
  for (const [what, conditions] of Object.entries(searches)) {
    const times: number[] = [];
    let found = 0;
    for (let round = 0; round < 5; round++) {
      const beganMs = performance.now();
      ({
        rows: { length: found },
      } = await table.find({ fromMs: 0, toMs: Date.now() + dayMs, ...conditions }, 50));
      times.push(performance.now() - beganMs);
    }
    rows.push([what, String(found), Math.max(...times).toFixed(1)]);
  }
  console.log(formatTable(['search', 'found', 'slowest of 5, ms'], rows));
}

/** Beside a statement every few milliseconds, as a payment would send it. */
async function measureDeletion(database: Database): Promise<void> {
  const table = createRequestRecordTable(database);
  const keptMs = dayMs - deleted * stepMs;
  let isDone = false;
  let longestMs = 0;
  const probe = (async () => {
    while (!isDone) {
      const beganMs = performance.now();
      await new Promise((resolve) => setImmediate(resolve));
      await database.query('SELECT 1 AS one');
      longestMs = Math.max(longestMs, performance.now() - beganMs);
    }
  })();
  const beganMs = performance.now();
  await deleteInBatches((limit, from) => table.deleteRecords(keptMs, limit, from));
  const seconds = (performance.now() - beganMs) / 1_000;
  isDone = true;
  await probe;
  console.log(
    `deleted ${deleted} in ${seconds.toFixed(1)} s; longest pause of another statement: ${longestMs.toFixed(0)} ms`,
  );
}

/** Mostly status reads; one in ten is a payment, one in a hundred is refused. */
function sampleRecord(receivedAtMs: number, index: number) {
  const requestId = randomUUID();
  const tenant = `tenant-${index % 20}`;
  const durationMs = 5 + ((index * 7) % 400) / 10;
  if (index % 100 === 99) return { ...failedRecord('CIRCUIT_OPEN', 503), requestId, receivedAtMs };
  const { request } = requestRecord();
  if (!request) throw new Error('a record has a request');
  const ofTenant = { ...request, client: `client of ${tenant}`, tenant, tenantId: tenant };
  const paymentId = `payment-${Math.floor(index / 10)}`;
  const call = {
    what: 'call',
    attempt: 1,
    connection: 'reused',
    firstByteMs: 3,
    totalMs: durationMs - 1,
  } as const;
  if (index % 10 === 0) {
    const events: readonly RequestEvent[] = [
      { what: 'ledger', verdict: 'claimed', waitedMs: 0.4 },
      { what: 'environment', environment: 'sandbox', why: 'active' },
      { what: 'permit', waitedMs: 0.1 },
      { ...call, status: 201 },
      { what: 'payment', paymentId },
      { what: 'recorded', as: 'answered' },
    ];
    return requestRecord({ requestId, receivedAtMs, durationMs, request: ofTenant }, events);
  }
  const read = { ...ofTenant, operation: 'getPaymentStatus', lane: 'status', paymentId } as const;
  return requestRecord({ requestId, receivedAtMs, durationMs, request: read, status: 200 }, [
    { what: 'environment', environment: 'sandbox', why: 'affinity' },
    { what: 'cache', verdict: 'miss' },
    { what: 'permit', waitedMs: 0.1 },
    { ...call, status: 200 },
  ]);
}
