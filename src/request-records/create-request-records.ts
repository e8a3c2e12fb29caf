/**
 * The records of requests that all instances share. They are written behind the requests: every second, and whenever 100 have ended. A
 * request never waits for it, and never fails because of it; while the database is unavailable, the newest records wait in memory.
 */

import { setImmediate } from 'node:timers/promises';
import { deleteInBatches } from '../store/delete-in-batches.ts';
import { createLatestRows } from '../store/latest-rows.ts';
import type { InitiationRow, RecordRow, RequestRecordTable } from '../store/request-records.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import { safeStack } from '../telemetry/log.ts';
import { type RequestRecord, tenantIdOf } from '../telemetry/request-record.ts';
import type { RequestSearch } from '../telemetry/request-search.ts';
import { laneOf } from '../telemetry/unstored-requests.ts';
import { createErrorCounts, errorKeyOf } from './error-counts.ts';
import { createRequestSearch, type TenantNames } from './find-requests.ts';
import { createMinuteFigures } from './minute-figures.ts';
import { createRequestHistory, type RequestHistory } from './request-history.ts';
import { rowOf } from './request-rows.ts';
import { createTenantShares, type ShareSettings, sharePeriodMs } from './tenant-shares.ts';

export interface RequestRecords {
  readonly search: RequestSearch;
  readonly history: RequestHistory;
  /** Stores everything that has ended so far; to be called every second. Never rejects. @returns whether all of it is stored */
  flush(): Promise<boolean>;
  /** @throws DatabaseError */
  deleteExpired(): Promise<void>;
}

interface RequestRecordsDependencies {
  readonly table: RequestRecordTable;
  readonly telemetry: Pick<Telemetry, 'unstoredRequests' | 'liveStats' | 'metrics' | 'log'>;
  /** The name of this instance; new after every start. */
  readonly instance: string;
  readonly settings: () => ShareSettings;
  readonly tenantNames: TenantNames;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** In one statement: SQLite takes 5 ms for them, for which requests wait. */
const recordsPerWrite = 100;
/** Rows of figures, of errors and of shares that wait while the database is unavailable. */
const maxUnwritten = 10_000;
/** Of a row, besides its texts: with its entries in the indexes. Bytes. */
const fixedBytes = 300;

export function createRequestRecords({
  table,
  telemetry: { unstoredRequests: unstored, liveStats, metrics, log },
  instance,
  settings,
  tenantNames,
  now = Date.now,
}: RequestRecordsDependencies): RequestRecords {
  const shares = createTenantShares(settings, now);
  const minutes = createMinuteFigures(instance);
  const errors = createErrorCounts(instance, now);
  const onRefused = (thrown: unknown) =>
    log('error', 'a row of the figures of requests is not stored', { stack: safeStack(thrown) });
  const figures = createLatestRows(table.putFigures, maxUnwritten, onRefused);
  const initiations = createLatestRows(table.putInitiations, maxUnwritten, onRefused);
  const errorRows = createLatestRows(table.putErrors, maxUnwritten, onRefused);
  const shareRows = createLatestRows(putShares, maxUnwritten, onRefused);
  /** What has happened to a record: one that changes after its end comes again. */
  const progress = new WeakMap<RequestRecord, 'counted' | 'stored' | 'dropped'>();
  let flushing: Promise<boolean> | undefined;
  /** The flush that begins when this one ends. */
  let next: Promise<boolean> | undefined;
  /** Whether the database is unavailable: then only the flush of each second writes. */
  let hasFailed = false;
  unstored.onBatch(recordsPerWrite, () => {
    if (!flushing && !hasFailed) void begin(storeRecords);
  });

  function countNotStored(requests: number): void {
    if (requests > 0) metrics.increment('penstock_request_records_not_stored_total', {}, requests);
  }

  /** Counts the error of a record, and whether its tenant may store it. */
  function admit(record: RequestRecord): boolean {
    const known = progress.get(record);
    if (!known) errors.add(record);
    if (known === 'stored' || known === 'dropped') return known === 'stored';
    const isAdmitted = shares.admit(tenantIdOf(record), laneOf(record));
    progress.set(record, isAdmitted ? 'counted' : 'dropped');
    if (!isAdmitted) countNotStored(1);
    return isAdmitted;
  }

  async function putShares(rows: ReturnType<typeof shares.takeChanged>): Promise<void> {
    const written = await table.putShares(rows.map((row) => ({ ...row, instance })));
    for (const { period, tenant, bytes_of_others: bytes } of written)
      shares.setBytesOfOthers(Number(period), String(tenant), Number(bytes));
  }

  /** @throws DatabaseError */
  async function storeSome(records: readonly RequestRecord[]): Promise<void> {
    const admitted = records.filter(admit);
    const rows = admitted.map((record) => rowOf(record, instance));
    if (rows.length === 0) return;
    let refused: ReadonlyMap<number, unknown>;
    try {
      refused = await table.insert(rows);
    } catch (thrown) {
      unstored.putBack(admitted);
      throw thrown;
    }
    countNotStored(refused.size);
    for (const [index, record] of admitted.entries()) {
      const row = rows[index];
      const wasStored = progress.get(record) === 'stored';
      if (refused.has(index) || !row) shares.addNotStored(tenantIdOf(record), 1);
      else if (!wasStored) shares.add(tenantIdOf(record), estimatedBytesOf(row));
      progress.set(record, refused.has(index) ? 'dropped' : 'stored');
    }
  }

  /** Stores the records that wait; those that come meanwhile are left to the next call, or it might never end. @throws DatabaseError */
  async function storeRecords(): Promise<void> {
    const newest = unstored.newest();
    const take = () => unstored.take(recordsPerWrite, newest);
    for (let taken = take(); taken.length > 0; taken = take()) {
      await storeSome(taken);
      await setImmediate(); // requests are served in between: SQLite answers in the same turn of the event loop
    }
  }

  /** @throws DatabaseError */
  async function storeAll(): Promise<void> {
    for (const [tenant, requests] of unstored.takeEvicted()) {
      shares.addNotStored(tenant, requests);
      countNotStored(requests);
    }
    const changed = minutes.add(liveStats.recent());
    for (const row of changed.figures) figures.set(String(row.minute), row);
    for (const row of changed.initiations) initiations.set(initiationKeyOf(row), row);
    takeErrors();
    await storeRecords();
    takeErrors();
    await figures.write();
    await initiations.write();
    await errorRows.write();
    for (const row of shares.takeChanged()) shareRows.set(JSON.stringify([row.period, row.tenant]), row);
    await shareRows.write();
  }

  function takeErrors(): void {
    for (const row of errors.takeChanged()) errorRows.set(errorKeyOf(row), row);
  }

  /** Never rejects: the next flush tries again, and a repeated write has no effect. */
  function begin(store: () => Promise<void>): Promise<boolean> {
    flushing = store()
      .then(
        () => false,
        () => true,
      )
      .then((failed) => {
        hasFailed = failed;
        flushing = undefined;
        return !failed;
      });
    return flushing;
  }

  async function flushNext(): Promise<boolean> {
    do await flushing;
    while (flushing);
    next = undefined;
    return begin(storeAll);
  }

  /** What has ended before the call is stored afterwards. Writes never run at the same time. */
  function flush(): Promise<boolean> {
    next ??= flushNext();
    return next;
  }

  const reader = { table, flush, keepFor: () => settings().keepFor, tenants: tenantNames, now };
  return {
    search: createRequestSearch({ ...reader, unstored, instance }),
    history: createRequestHistory(reader),
    flush,
    async deleteExpired() {
      const { keepFor } = settings();
      await deleteInBatches((limit, from) => table.deleteRecords(keepFor, limit, from));
      await table.deleteFigures(keepFor + sharePeriodMs, sharePeriodMs);
    },
  };
}

const initiationKeyOf = ({ minute, environment, product, result }: InitiationRow) =>
  JSON.stringify([minute, environment, product, result]);

function estimatedBytesOf(row: RecordRow): number {
  let bytes = fixedBytes;
  for (const value of Object.values(row)) if (typeof value === 'string') bytes += value.length;
  return bytes;
}
