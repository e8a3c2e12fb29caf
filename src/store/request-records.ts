/** Records of requests, and what is counted of all requests in each minute, as tables. Written behind the requests. */

import { setImmediate } from 'node:timers/promises';
import {
  type BatchResult,
  type Columns,
  type Database,
  type InputOf,
  isOutage,
  type Row,
  rowsOfAll,
  statement,
} from './database.ts';
import { type Deleted, deletedAt } from './delete-in-batches.ts';

const recordColumns = {
  instance: 'text',
  number: 'bigint',
  received_at: 'bigint',
  request_id: 'text',
  operation: 'text',
  client: 'text',
  tenant: 'text',
  environment: 'text',
  product: 'text',
  payment_id: 'text',
  status: 'integer',
  outcome: 'text',
  bank_error: 'text',
  error: 'text',
  why: 'text',
  duration_tenths: 'integer',
  served_from: 'text',
  events: 'text',
} as const;

/** A row of `request_record`. Instance and number identify it. */
export type RecordRow = InputOf<typeof recordColumns>;

const columnNames = Object.keys(recordColumns).join(', ');

/** A record that is written again has changed after its end, or the answer of the database to the first write was lost. */
const insertRecords = statement({
  columns: recordColumns,
  sql: (input) => `
    INSERT INTO request_record (${columnNames}) SELECT ${columnNames} FROM ${input} AS i WHERE true
    ON CONFLICT (instance, number) DO UPDATE SET
      payment_id = excluded.payment_id, outcome = excluded.outcome, bank_error = excluded.bank_error, events = excluded.events`,
});

/** What tenants use of the records in a period, by an instance. */
const putShares = statement({
  columns: { period: 'bigint', tenant: 'text', instance: 'text', bytes: 'bigint', not_stored: 'bigint' },
  sql: (input) => `
    INSERT INTO record_share (period, tenant, instance, bytes, not_stored)
    SELECT period, tenant, instance, bytes, not_stored FROM ${input} AS i WHERE true
    ON CONFLICT (period, tenant, instance) DO UPDATE SET bytes = excluded.bytes, not_stored = excluded.not_stored
    RETURNING period, tenant, (
      SELECT coalesce(sum(o.bytes), 0) FROM record_share o WHERE o.period = record_share.period
        AND o.tenant = record_share.tenant AND o.instance <> record_share.instance) AS bytes_of_others`,
});

/** Inserts rows, or replaces those with the same key: the minute that has not ended is written every second. */
function putInto<Input extends Columns>(
  table: string,
  columns: Input,
  key: readonly (keyof Input & string)[],
) {
  const names = Object.keys(columns);
  const changed = names.filter((name) => !key.includes(name));
  return statement({
    columns,
    sql: (input) => `
    INSERT INTO ${table} (${names.join(', ')}) SELECT ${names.join(', ')} FROM ${input} AS i WHERE true
    ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${changed.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  });
}

const figureColumns = {
  minute: 'bigint',
  instance: 'text',
  requests: 'integer',
  refused: 'integer',
  failed: 'integer',
  hit: 'integer',
  stale: 'integer',
  shared: 'integer',
  miss: 'integer',
  bypass: 'integer',
  durations: 'text',
} as const;

export type FigureRow = InputOf<typeof figureColumns>;

const putFigures = putInto('minute_figure', figureColumns, ['minute', 'instance']);

const initiationColumns = {
  minute: 'bigint',
  instance: 'text',
  environment: 'text',
  product: 'text',
  result: 'text',
  requests: 'integer',
  bank_ms: 'bigint',
} as const;

export type InitiationRow = InputOf<typeof initiationColumns>;

const putInitiations = putInto('minute_initiation', initiationColumns, [
  ...(['minute', 'instance', 'environment', 'product', 'result'] as const),
]);

const errorKeyColumns = [
  ...(['code', 'bank_status', 'bank_error', 'client', 'tenant', 'operation', 'environment'] as const),
];
const errorKey = errorKeyColumns.join(', ');

const errorColumns = {
  minute: 'bigint',
  instance: 'text',
  code: 'text',
  bank_status: 'text',
  bank_error: 'text',
  client: 'text',
  tenant: 'text',
  operation: 'text',
  environment: 'text',
  requests: 'integer',
  last_at: 'bigint',
  last_request_id: 'text',
} as const;

export type ErrorRow = InputOf<typeof errorColumns>;

const putErrors = putInto('minute_error', errorColumns, ['minute', 'instance', ...errorKeyColumns]);

/** Which records: all conditions must hold. Times in milliseconds since 1970. */
export interface RecordConditions {
  /** In any letter case. */
  readonly requestId?: string | undefined;
  readonly paymentId?: string | undefined;
  /** As in the records. */
  readonly tenants?: readonly string[] | undefined;
  readonly operation?: string | undefined;
  readonly client?: string | undefined;
  readonly environment?: string | undefined;
  readonly product?: string | undefined;
  readonly outcome?: string | undefined;
  /** The source of the answer. */
  readonly servedFrom?: string | undefined;
  readonly bankError?: string | undefined;
  /** A code of the gateway or of the bank, the status of an error response of the bank, or `any`. */
  readonly error?: string | undefined;
  /** The status of the response. */
  readonly status?: number | undefined;
  readonly minDurationMs?: number | undefined;
  readonly fromMs: number;
  /** Excluded. */
  readonly toMs: number;
}

interface FoundRecords {
  /** Newest first; of those that were received in the last millisecond of the page, all. */
  readonly rows: readonly Row[];
  /** All matching records that were received since then are in `rows`. */
  readonly searchedFromMs: number;
}

/** Of the records that match the conditions with an index, a search looks at so many at most: the caller can continue it. */
const maxLookedAt = 20_000;
/** Records that were received in one millisecond. */
const maxAtOnce = 1_000;

export type RequestRecordTable = ReturnType<typeof createRequestRecordTable>;

/** Every function @throws DatabaseError. */
export function createRequestRecordTable(database: Database) {
  const { dialect } = database;

  async function select(
    conditions: RecordConditions,
    limit: number,
    lookedAt: number,
  ): Promise<readonly Row[]> {
    const { values, indexed, others } = whereOf(conditions, { dialect });
    return database.query(
      `SELECT * FROM (SELECT * FROM request_record WHERE ${indexed.join(' AND ')}
         ORDER BY received_at DESC LIMIT ${lookedAt}) AS r
       WHERE ${others.join(' AND ')} ORDER BY received_at DESC, number DESC LIMIT ${limit}`,
      values,
    );
  }

  /** Since when all records have been looked at, if there are more than one search looks at. */
  async function oldestLookedAt(conditions: RecordConditions): Promise<number | undefined> {
    const { values, indexed } = whereOf(conditions, { dialect, withoutOthers: true });
    const [row] = await database.query(
      `SELECT received_at FROM request_record WHERE ${indexed.join(' AND ')}
       ORDER BY received_at DESC LIMIT 1 OFFSET ${maxLookedAt - 1}`,
      values,
    );
    return row && Number(row.received_at);
  }

  return {
    /**
     * If the database refuses a row that it may accept later, the caller writes all of them again, which has no effect on those that are stored.
     *
     * @returns the rows that the database never accepts, such as one with a NUL
     */
    async insert(rows: readonly RecordRow[]): Promise<BatchResult['refused']> {
      const { refused } = await database.batch(insertRecords, rows);
      for (const cause of refused.values()) if (isOutage(cause)) throw cause;
      return refused;
    },

    /** Writes totals of an instance. @returns `bytes_of_others`, which these tenants use in these periods by other instances */
    async putShares(rows: readonly InputOf<typeof putShares.columns>[]): Promise<readonly Row[]> {
      return rowsOfAll(database.batch(putShares, rows));
    },

    async putFigures(rows: readonly FigureRow[]): Promise<void> {
      await rowsOfAll(database.batch(putFigures, rows));
    },

    async putInitiations(rows: readonly InitiationRow[]): Promise<void> {
      await rowsOfAll(database.batch(putInitiations, rows));
    },

    async putErrors(rows: readonly ErrorRow[]): Promise<void> {
      await rowsOfAll(database.batch(putErrors, rows));
    },

    /** The newest records first: at most `limit`, slightly more if several were received in the same millisecond. */
    async find(conditions: RecordConditions, limit: number): Promise<FoundRecords> {
      const rows = await select(conditions, limit + 1, maxLookedAt);
      const last = rows[limit - 1];
      if (rows.length > limit && last) {
        const atMs = Number(last.received_at);
        const together = await select({ ...conditions, fromMs: atMs, toMs: atMs + 1 }, maxAtOnce, maxAtOnce);
        const newer = rows.filter((row) => Number(row.received_at) > atMs);
        return { rows: [...newer, ...together], searchedFromMs: atMs };
      }
      await setImmediate(); // requests are served in between: SQLite answers in the same turn of the event loop
      const oldest = await oldestLookedAt(conditions);
      if (oldest === undefined) return { rows, searchedFromMs: conditions.fromMs };
      const found = rows.filter((row) => Number(row.received_at) > oldest);
      return { rows: found, searchedFromMs: oldest + 1 };
    },

    /** How many requests have no record. @param tenants as in the records; by default, all of them */
    async countNotStored(
      fromPeriod: number,
      toPeriod: number,
      tenants: readonly string[] | undefined,
    ): Promise<number> {
      const ofTenants = tenants?.map((_, index) => `$${index + 3}`).join(', ');
      const [row] = await database.query(
        `SELECT coalesce(sum(not_stored), 0) AS requests FROM record_share WHERE period BETWEEN $1 AND $2
         ${ofTenants === undefined ? '' : `AND tenant IN (${ofTenants})`}`,
        [fromPeriod, toPeriod, ...(tenants ?? [])],
      );
      return Number(row?.requests);
    },

    /** Of all instances, in no order. @param from the beginning of the first minute: seconds since 1970 */
    figures: (from: number, to: number): Promise<readonly Row[]> =>
      database.query('SELECT * FROM minute_figure WHERE minute BETWEEN $1 AND $2', [from, to]),

    /** The initiations of all instances together, without the product, by the hour. @param from seconds since 1970 */
    initiations: (from: number): Promise<readonly Row[]> =>
      database.query(
        `SELECT environment, minute / 3600 AS hour, result, sum(requests) AS requests, sum(bank_ms) AS bank_ms FROM minute_initiation
         WHERE minute >= $1 GROUP BY environment, minute / 3600, result`,
        [from],
      ),

    /** The errors of all instances together, the most frequent first. `last` is the time and the X-Request-ID of the last one. */
    errors: (from: number, limit: number): Promise<readonly Row[]> =>
      database.query(
        `SELECT ${errorKey}, sum(requests) AS requests, max(CAST(last_at AS text) || ' ' || last_request_id) AS last
         FROM minute_error WHERE minute >= $1 GROUP BY ${errorKey} ORDER BY sum(requests) DESC, max(last_at) DESC LIMIT $2`,
        [from, limit],
      ),

    /** @param from records that were received before this time are not looked at */
    async deleteRecords(keptMs: number, limit: number, from = 0): Promise<Deleted> {
      // The time is read once, or no index would end the search.
      const deleted = await database.query(
        `DELETE FROM request_record WHERE (instance, number) IN (
           SELECT instance, number FROM request_record WHERE received_at < (SELECT now_ms() - $1) AND received_at >= $3
           ORDER BY received_at LIMIT $2) RETURNING received_at`,
        [keptMs, limit, from],
      );
      return deletedAt(deleted.map(({ received_at: at }) => Number(at)));
    },

    /** @param keptMs of the figures of minutes, errors and shares @param sharePeriodMs the length of a period of shares */
    async deleteFigures(keptMs: number, sharePeriodMs: number): Promise<void> {
      await database.query('DELETE FROM minute_figure WHERE minute < (now_ms() - $1) / 1000', [keptMs]);
      await database.query('DELETE FROM minute_initiation WHERE minute < (now_ms() - $1) / 1000', [keptMs]);
      await database.query('DELETE FROM minute_error WHERE minute < (now_ms() - $1) / 1000', [keptMs]);
      await database.query('DELETE FROM record_share WHERE period < (now_ms() - $1) / $2', [
        keptMs,
        sharePeriodMs,
      ]);
    },
  };
}

/** Conditions for which there is an index, and the others. @param withoutOthers whether only the first ones are needed */
function whereOf(
  conditions: RecordConditions,
  { dialect, withoutOthers = false }: Pick<Database, 'dialect'> & { readonly withoutOthers?: boolean },
) {
  const values: (string | number)[] = [];
  const bound = (value: string | number) => `$${values.push(value)}`;
  const { requestId, paymentId, tenants, fromMs, toMs } = conditions;
  const indexed = [`received_at >= ${bound(fromMs)}`, `received_at < ${bound(toMs)}`];
  if (requestId !== undefined) indexed.push(`lower(request_id) = ${bound(requestId.toLowerCase())}`);
  if (paymentId !== undefined) indexed.push(`payment_id = ${bound(paymentId)}`);
  // SQLite, which knows no numbers of rows, would use the index of the tenant instead of that of the id: not of `+tenant`.
  const isById = requestId !== undefined || paymentId !== undefined;
  const tenant = isById && dialect === 'sqlite' ? '+tenant' : 'tenant';
  if (tenants) indexed.push(`${tenant} IN (${tenants.map(bound).join(', ')})`);
  return { values, indexed, others: withoutOthers ? [] : otherConditions(conditions, bound) };
}

function otherConditions(
  { operation, client, environment, product, outcome, servedFrom, bankError, ...rest }: RecordConditions,
  bound: (value: string | number) => string,
): readonly string[] {
  const { error, status, minDurationMs } = rest;
  const equal = {
    operation,
    client,
    environment,
    product,
    outcome,
    status,
    served_from: servedFrom,
    bank_error: bankError,
  };
  const others = ['true'];
  for (const [column, value] of Object.entries(equal))
    if (value !== undefined) others.push(`${column} = ${bound(value)}`);
  if (minDurationMs !== undefined) others.push(`duration_tenths >= ${bound(Math.ceil(minDurationMs * 10))}`);
  if (error !== undefined) others.push(errorCondition(error, bound));
  return others;
}

const isBankError = `(error IS NULL AND served_from = 'bank' AND status >= 400)`;

function errorCondition(error: string, bound: (value: string | number) => string): string {
  if (error === 'any') return `(error IS NOT NULL OR ${isBankError})`;
  const bankStatus = /^\d{3}$/.test(error)
    ? `(${isBankError} AND status = ${bound(Number(error))})`
    : 'false';
  const code = bound(error);
  return `(error = ${code} OR bank_error = ${code} OR ${bankStatus})`;
}
