/**
 * The report of the contract guard, as tables. A row has the total of one instance on one day, which replaces the former total: a write
 * whose answer is lost is repeated, and counts once.
 */

import { type Columns, type Database, type InputOf, type Row, rowsOfAll, statement } from './database.ts';
import { type Deleted, deletedAt } from './delete-in-batches.ts';

export const dayMs = 86_400_000;

/** The day of a time in UTC: days since 1970. @param atMs milliseconds since 1970 */
export const dayOf = (atMs: number): number => Math.floor(atMs / dayMs);

const scopeColumns = {
  environment: 'text',
  contract: 'text',
  is_own: 'boolean',
  direction: 'text',
} as const;

const kindColumns = {
  operation: 'text',
  path: 'text',
  rule: 'text',
  level: 'text',
  effect: 'text',
} as const;

/** Identifies a row of an instance. */
const rowColumns = { day: 'integer', instance: 'text', number: 'integer' } as const;
const rowKey = 'day, instance, number';

/** Inserts rows, or replaces these columns of rows that exist. */
const put = <const Input extends Columns>(
  table: string,
  columns: Input,
  replaced: readonly (keyof Input & string)[],
) =>
  statement({
    columns,
    sql: (input) => {
      const names = Object.keys(columns).join(', ');
      return `
      INSERT INTO ${table} (${names}) SELECT ${names} FROM ${input} AS i WHERE true
      ON CONFLICT (${rowKey}) DO UPDATE SET ${replaced.map((name) => `${name} = excluded.${name}`).join(', ')}`;
    },
  });

const deviationColumns = {
  ...rowColumns,
  ...scopeColumns,
  ...kindColumns,
  also_refused_by: 'text',
  client: 'text',
  messages: 'integer',
  first_at: 'bigint',
  last_at: 'bigint',
  last_request_id: 'text',
} as const;

export type DeviationRow = InputOf<typeof deviationColumns>;

const putDeviations = put('contract_deviation', deviationColumns, [
  'messages',
  'first_at',
  'last_at',
  'last_request_id',
]);

const checkColumns = {
  ...rowColumns,
  ...scopeColumns,
  operation: 'text',
  client: 'text',
  messages: 'integer',
  first_at: 'bigint',
} as const;

export type CheckRow = InputOf<typeof checkColumns>;

const putChecks = put('contract_check', checkColumns, ['messages', 'first_at']);

const skipColumns = {
  ...rowColumns,
  environment: 'text',
  direction: 'text',
  reason: 'text',
  messages: 'integer',
} as const;

export type SkipRow = InputOf<typeof skipColumns>;

const putSkips = put('contract_skip', skipColumns, ['messages']);

const baselineColumns = {
  environment: 'text',
  contract: 'text',
  operation: 'text',
  instance: 'text',
  answers: 'integer',
} as const;

export type BaselineRow = InputOf<typeof baselineColumns>;

/** How many answers of an operation, of all instances, are its baseline. */
export const baselineAnswers = 10;

const putBaselines = statement({
  columns: baselineColumns,
  sql: (input) => {
    const names = Object.keys(baselineColumns).join(', ');
    return `
    INSERT INTO contract_baseline (${names}, seen_at) SELECT ${names}, now_ms() FROM ${input} AS i WHERE true
    ON CONFLICT (environment, contract, operation, instance) DO UPDATE SET
      answers = excluded.answers, seen_at = excluded.seen_at`;
  },
});

const foundColumns = {
  environment: 'text',
  contract: 'text',
  ...kindColumns,
  found_by: 'text',
  found_at: 'bigint',
} as const;

export type FoundKind = InputOf<typeof foundColumns>;

const kindKey = 'environment, contract, operation, path, rule';

/** In the order of the key, so that two instances do not wait for each other. */
const putKinds = statement({
  columns: foundColumns,
  sql: (input) => {
    const names = Object.keys(foundColumns).join(', ');
    return `
    INSERT INTO contract_kind (${names}, is_change, seen_at)
    SELECT ${names}, ${baselineAnswers} <= coalesce((
        SELECT sum(b.answers) FROM contract_baseline AS b
        WHERE b.environment = i.environment AND b.contract = i.contract AND b.operation = i.operation), 0),
      now_ms()
    FROM ${input} AS i WHERE true ORDER BY ${kindKey}
    ON CONFLICT (${kindKey}) DO UPDATE SET seen_at = excluded.seen_at
    RETURNING ${kindKey}, found_by, found_at, is_change`;
  },
});

const scope = Object.keys(scopeColumns).join(', ');
const deviation = `${scope}, ${Object.keys(kindColumns).join(', ')}, also_refused_by`;

/** node:sqlite binds numbers as REAL: the quotient would not be a whole number. */
const firstKeptDay = `CAST((now_ms() - $1) / ${dayMs} AS integer)`;

export type ContractReportTable = ReturnType<typeof createContractReportTable>;

/** Every function @throws DatabaseError. */
export function createContractReportTable(database: Database) {
  /** A day expires as a whole, `keptMs` after its end. */
  const deleteDays = async (table: string, keptMs: number, limit: number, from: number): Promise<Deleted> => {
    const deleted = await database.query(
      `DELETE FROM ${table} WHERE (${rowKey}) IN (
         SELECT ${rowKey} FROM ${table} WHERE day < (SELECT ${firstKeptDay}) AND day >= $3
         ORDER BY day LIMIT $2) RETURNING day`,
      [keptMs, limit, from],
    );
    return deletedAt(deleted.map(({ day }) => Number(day)));
  };

  return {
    putDeviations: (rows: readonly DeviationRow[]) => rowsOfAll(database.batch(putDeviations, rows)),
    putChecks: (rows: readonly CheckRow[]) => rowsOfAll(database.batch(putChecks, rows)),
    putSkips: (rows: readonly SkipRow[]) => rowsOfAll(database.batch(putSkips, rows)),
    /** How many answers an instance has checked: at most `baselineAnswers` of an operation. */
    putBaselines: (rows: readonly BaselineRow[]) => rowsOfAll(database.batch(putBaselines, rows)),

    /**
     * Stores kinds of deviations that are not known. Those of operations with a baseline are changes of the bank.
     *
     * @returns the stored rows of these kinds: their key, the instance that has found them (`found_by`), the time (`found_at`: milliseconds since
     *   1970), and whether they are changes of the bank (`is_change`)
     */
    putKinds: (kinds: readonly FoundKind[]): Promise<readonly Row[]> =>
      rowsOfAll(database.batch(putKinds, kinds)),

    /**
     * By deviation and client, of all instances. `last` is the time and the X-Request-ID of the last message, `changed_at` when this
     * deviation was found as a change of the bank since then.
     */
    deviations: (fromDay: number): Promise<readonly Row[]> =>
      database.query(
        `SELECT d.*, k.found_at AS changed_at FROM (
           SELECT ${deviation}, client, sum(messages) AS messages, min(first_at) AS first_at,
             max(CAST(last_at AS text) || ' ' || last_request_id) AS last
           FROM contract_deviation WHERE day >= $1 GROUP BY ${deviation}, client) AS d
         LEFT JOIN contract_kind AS k ON d.is_own AND d.direction = 'response' AND k.is_change AND k.found_at >= $2
           AND k.environment = d.environment AND k.contract = d.contract AND k.operation = d.operation
           AND k.path = d.path AND k.rule = d.rule AND k.level = d.level AND k.effect = d.effect`,
        [fromDay, fromDay * dayMs],
      ),

    /** By environment, contract, direction and client, of all instances. */
    checks: (fromDay: number): Promise<readonly Row[]> =>
      database.query(
        `SELECT ${scope}, client, sum(messages) AS messages, min(first_at) AS first_at
         FROM contract_check WHERE day >= $1 GROUP BY ${scope}, client`,
        [fromDay],
      ),

    skips: (fromDay: number): Promise<readonly Row[]> =>
      database.query(
        `SELECT environment, direction, reason, sum(messages) AS messages
         FROM contract_skip WHERE day >= $1 GROUP BY environment, direction, reason`,
        [fromDay],
      ),

    deleteDeviations: (keptMs: number, limit: number, from = 0): Promise<Deleted> =>
      deleteDays('contract_deviation', keptMs, limit, from),

    deleteChecks: (keptMs: number, limit: number, from = 0): Promise<Deleted> =>
      deleteDays('contract_check', keptMs, limit, from),

    /** Deletes the other rows, which are few. */
    async deleteOthers(keptMs: number): Promise<void> {
      await database.query(`DELETE FROM contract_skip WHERE day < ${firstKeptDay}`, [keptMs]);
      await database.query('DELETE FROM contract_baseline WHERE seen_at < now_ms() - $1', [keptMs]);
      await database.query('DELETE FROM contract_kind WHERE seen_at < now_ms() - $1', [keptMs]);
    },
  };
}
