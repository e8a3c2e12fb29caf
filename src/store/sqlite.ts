/** The database of one instance: a SQLite file, or SQLite in memory. */

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import {
  type Columns,
  type Database,
  DatabaseError,
  oneByOne,
  type Row,
  type Statement,
  type Value,
} from './database.ts';
import { toStateFileError } from './sqlite-errors.ts';
import { claimFile, createIfMissing, createWalGuard } from './sqlite-file.ts';

/** A database that ends with this process. */
export const inMemory = ':memory:';

/**
 * Where SQLite keeps it. With `:memory:`, each commit would take longer the more is stored: SQLite looks at all pages that were ever
 * changed. The limit is 1 GiB (SQLITE_MEMDB_DEFAULT_MAXSIZE).
 */
const memoryAddress = 'file:penstock?vfs=memdb';

/** How long to wait for another process to release the file, which blocks this one. Milliseconds. */
const lockTimeoutMs = 500;

/** Identifies our files: "PstD". The version of the schema is in a table (migrations.ts). */
const format = { applicationId: 0x50737444, version: 0, schema: '' };

/**
 * Opens the file with the first statement, which fails if the file cannot be opened, is used by another process, or is not ours; the
 * next statement tries again.
 *
 * @param file or `inMemory`
 * @param wall milliseconds since 1970; the database's own clock follows it, and never runs back
 */
export function openSqlite(file: string, wall: () => number = steadyWall): Database {
  let opened: OpenDatabase | undefined;
  let isClosed = false;
  const connection = (): OpenDatabase => {
    if (isClosed) throw new DatabaseError('the database is closed', 'none');
    opened ??= translated(file, () => open(file, wall));
    return opened;
  };
  const exec = (sql: string) => translated(file, () => connection().database.exec(sql));

  const all = (sql: string, values: readonly Value[]): readonly Row[] =>
    translated(
      file,
      () =>
        connection()
          .prepare(sql)
          .all(...values.map(toSqlite)) as unknown as readonly Row[],
    ); // rows of columns

  const checkFiles = () => translated(file, () => connection().checkFiles());

  function outsideTransaction<Result>(run: () => Result): Result {
    checkFiles();
    return run();
  }

  function inTransaction<Result>(run: () => Result): Result {
    const { database } = connection();
    checkFiles();
    all('BEGIN IMMEDIATE', []);
    try {
      const result = run();
      all('COMMIT', []);
      return result;
    } catch (thrown) {
      if (database.isTransaction) all('ROLLBACK', []); // SQLITE_FULL has ended it already
      throw thrown;
    }
  }

  return {
    dialect: 'sqlite',
    async batch(statement, rows) {
      const { texts, names } = connection().textsOf(statement);
      const run = (row: Readonly<Record<string, Value>>): readonly Row[] => {
        const values = names.map((name) => row[name] ?? null);
        const execute = ({ sql, hasTime }: SqliteText) =>
          all(sql, hasTime ? [...values, connection().now()] : values);
        return texts.map(execute).at(-1) ?? [];
      };
      const runAll = () => rows.flatMap(run);
      try {
        return {
          rows: statement.isRead ? outsideTransaction(runAll) : inTransaction(runAll),
          refused: new Map(),
        };
      } catch (thrown) {
        if (!(thrown instanceof DatabaseError)) throw thrown;
        if (rows.length === 1) return { rows: [], refused: new Map([[0, thrown]]) };
        return oneByOne(rows, async (row) => inTransaction(() => run(row)));
      }
    },
    async query(sql, values = []) {
      return outsideTransaction(() => all(sql.replaceAll(/\$(\d+)/g, '?$1'), values));
    },
    execute: async (script) => inTransaction(() => exec(script)),
    async close() {
      isClosed = true;
      if (opened?.database.isOpen) opened.database.close();
    },
  };
}

/** The clock of the machine when the process started, and the time since: a step of the clock must not end the window of a repeat. */
const steadyWall = () => Math.floor(performance.timeOrigin + performance.now());

type OpenDatabase = ReturnType<typeof open>;

function open(file: string, wall: () => number) {
  const isFile = file !== inMemory;
  let latestMs = 0;
  let checkFiles = () => {};
  function now(): number {
    latestMs = Math.max(latestMs, wall());
    return latestMs;
  }
  if (isFile) createIfMissing(file);
  const database = new DatabaseSync(isFile ? file : memoryAddress, { timeout: lockTimeoutMs });
  try {
    if (isFile) claimFile(file, database, format);
    if (isFile) checkFiles = createWalGuard(file, database);
    latestMs = latestTimeIn(database);
    database.function('now_ms', { deterministic: false }, now);
    database.function('current_timeline', { deterministic: true }, () => ''); // that of a new database: nothing fails over
  } catch (thrown) {
    database.close();
    throw thrown;
  }
  const prepared = new Map<string, StatementSync>();
  /** A bound time in place of `now_ms()`: SQLite would call JavaScript for each of them. */
  const texts = new WeakMap<object, StatementTexts>();
  return {
    database,
    now,
    checkFiles,
    textsOf(statement: Statement<Columns>): StatementTexts {
      const known = texts.get(statement) ?? textsOf(statement);
      texts.set(statement, known);
      return known;
    },
    prepare(sql: string): StatementSync {
      const statement = prepared.get(sql) ?? database.prepare(sql);
      prepared.set(sql, statement);
      return statement;
    },
  };
}

interface StatementTexts {
  /** To be executed one after the other. */
  readonly texts: readonly SqliteText[];
  /** Of the parameters, in their order. */
  readonly names: readonly string[];
}

interface SqliteText {
  readonly sql: string;
  /** Whether the time is a parameter behind the others. */
  readonly hasTime: boolean;
}

function textsOf({ columns, before, sql }: Statement<Columns>): StatementTexts {
  const names = Object.keys(columns);
  const input = `(SELECT ${names.map((name, index) => `?${index + 1} AS ${name}`).join(', ')})`;
  const written = before ? [before.sql(input), sql(input, before.table)] : [sql(input, '')];
  const texts = written.map((text) => {
    const sql = text.replaceAll('now_ms()', `?${names.length + 1}`);
    return { sql, hasTime: sql !== text };
  });
  return { names, texts };
}

/** The last report of an instance: the clock does not run back after a restart. */
function latestTimeIn(database: DatabaseSync): number {
  const exists = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'instance'").get();
  return exists ? Number(database.prepare('SELECT max(seen_at) AS seen FROM instance').get()?.seen ?? 0) : 0;
}

function toSqlite(value: Value): string | number | Buffer | null {
  return typeof value === 'boolean' ? Number(value) : value;
}

/** SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH and SQLITE_RANGE (sqlite.org/rescode.html). */
const concernsValue: ReadonlySet<number> = new Set([18, 19, 20, 25]);
/** SQLITE_ERROR: a wrong statement. */
const wrongStatement = 1;

/** SQLite answers in this process: a statement that fails has changed nothing. */
function translated<Result>(file: string, run: () => Result): Result {
  try {
    return run();
  } catch (thrown) {
    if (thrown instanceof DatabaseError) throw thrown;
    const code = thrown instanceof Error && 'errcode' in thrown ? Number(thrown.errcode) & 0xff : 0;
    const effect = concernsValue.has(code) ? 'none-ever' : 'none';
    if (effect === 'none-ever' || code === wrongStatement || file === inMemory)
      throw new DatabaseError(
        `SQLite: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
        effect,
        thrown,
      );
    const problem = toStateFileError(file, thrown);
    throw new DatabaseError(problem.message, effect, problem);
  }
}
