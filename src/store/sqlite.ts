/** The database of one instance: a SQLite file, or SQLite in memory. */

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type Database, DatabaseError, oneByOne, type Row, type Value } from './database.ts';

/** How long to wait for another process to release the file, which blocks this one. Milliseconds. */
const lockTimeoutMs = 500;

/**
 * @param file `:memory:` for a database that ends with this process
 * @param wall milliseconds since 1970; the database's own clock follows it, and never runs back
 * @throws DatabaseError if the file cannot be opened, is used by another process, or is not a database
 */
export function openSqlite(file: string, wall: () => number = Date.now): Database {
  const database = translated(() => new DatabaseSync(file, { timeout: lockTimeoutMs }));
  let latestMs = 0;
  database.function('now_ms', { deterministic: false }, () => {
    latestMs = Math.max(latestMs, wall());
    return latestMs;
  });
  translated(() => {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    database.exec('BEGIN IMMEDIATE; COMMIT'); // takes the lock now
  });
  const prepared = new Map<string, StatementSync>();

  const prepare = (sql: string): StatementSync => {
    const statement = prepared.get(sql) ?? database.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  };

  const all = (sql: string, values: readonly Value[]): readonly Row[] =>
    translated(() => prepare(sql).all(...values.map(toSqlite)) as unknown as readonly Row[]); // rows of columns

  function inTransaction<Result>(run: () => Result): Result {
    translated(() => database.exec('BEGIN IMMEDIATE'));
    try {
      const result = run();
      translated(() => database.exec('COMMIT'));
      return result;
    } catch (thrown) {
      if (database.isTransaction) translated(() => database.exec('ROLLBACK')); // SQLITE_FULL has ended it already
      throw thrown;
    }
  }

  return {
    dialect: 'sqlite',
    async batch({ columns, before, sql }, rows) {
      const names = Object.keys(columns);
      const input = `(SELECT ${names.map((name, index) => `?${index + 1} AS ${name}`).join(', ')})`;
      const texts = before ? [before.sql(input), sql(input, before.table)] : [sql(input, '')];
      const run = (row: Readonly<Record<string, Value>>): readonly Row[] => {
        const values = names.map((name) => row[name] ?? null);
        return texts.map((text) => all(text, values)).at(-1) ?? [];
      };
      try {
        return { rows: inTransaction(() => rows.flatMap(run)), refused: new Map() };
      } catch (thrown) {
        if (!(thrown instanceof DatabaseError)) throw thrown;
        if (rows.length === 1) return { rows: [], refused: new Map([[0, thrown]]) };
        return oneByOne(rows, async (row) => inTransaction(() => run(row)));
      }
    },
    query: async (sql, values = []) => all(sql.replaceAll(/\$(\d+)/g, '?$1'), values),
    execute: async (script) => inTransaction(() => translated(() => database.exec(script))),
    close: async () => database.close(),
  };
}

function toSqlite(value: Value): string | number | Buffer | null {
  return typeof value === 'boolean' ? Number(value) : value;
}

/** SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH and SQLITE_RANGE (sqlite.org/rescode.html). */
const concernsValue: ReadonlySet<number> = new Set([18, 19, 20, 25]);

/** SQLite answers in this process: a statement that fails has changed nothing. */
function translated<Result>(run: () => Result): Result {
  try {
    return run();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const code = cause instanceof Error && 'errcode' in cause ? Number(cause.errcode) : 0;
    throw new DatabaseError(`SQLite: ${why}`, concernsValue.has(code & 0xff) ? 'none-ever' : 'none', cause);
  }
}
