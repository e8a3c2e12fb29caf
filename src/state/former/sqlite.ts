/**
 * State in one SQLite file, for a single instance: it survives a restart and a power cut. Only this file imports
 * node:sqlite.
 */

import { DatabaseSync } from 'node:sqlite';
import { stateUnavailable } from '../../request/errors.ts';
import { isPermanent, replacedFile, toStateFileError } from '../../store/sqlite-errors.ts';
import { claimFile, createIfMissing, createSameFileCheck } from '../../store/sqlite-file.ts';
import { createMemoryState } from '../memory.ts';
import type { State } from '../ports.ts';
import { createScheduleTables, createSqliteSchedules, schedulesSchema } from './sqlite-schedules.ts';

/** Identifies our files (PRAGMA application_id): "Pstk". */
const applicationId = 0x5073746b;
/** PRAGMA user_version. */
const schemaVersion = 1;
/** How long `open` waits, blocking the process, for another process to release the file. Milliseconds. */
const lockTimeoutMs = 500;

/**
 * Token buckets and pub/sub stay in memory, because no other process can share the file.
 *
 * @param onChange called when a problem begins, ends or becomes another one
 */
export function createSqliteState(
  file: string,
  onChange: (problem: string | undefined) => void = () => {},
  clocks: SystemClocks = machineClocks,
): State {
  let database: DatabaseSync | undefined;
  let openTables: Tables | undefined;
  let problem: string | undefined;
  let isUnusable = false;

  const setProblem = (next: string | undefined) => {
    if (next === problem || isUnusable) return;
    problem = next;
    onChange(next);
  };
  const tables = (): Tables => {
    if (!openTables) throw new Error('it is not open');
    return openTables;
  };
  const guarded = async <Result>(operation: () => Result | Promise<Result>): Promise<Result> => {
    try {
      return await operation();
    } catch (thrown) {
      const error = toStateFileError(file, thrown);
      if (openTables) setProblem(error.message);
      isUnusable ||= isPermanent(thrown);
      throw stateUnavailable(error);
    }
  };
  let isOpenFile = () => true;
  const groupCommit = createGroupCommit((work) => {
    if (!isOpenFile()) throw replacedFile(file);
    tables().transact(work);
    setProblem(undefined); // only a change proves that the disk accepts changes
  });
  const read = <Result>(operation: (tables: Tables) => Result) => guarded(() => operation(tables()));
  const change = <Result>(operation: (tables: Tables) => Result) =>
    guarded(() => groupCommit(() => operation(tables())));
  const { tokenBuckets, pubsub } = createMemoryState(clocks.monotonic);

  return {
    keyValues: {
      read: (key) => read(({ readValue }) => readValue(key)),
      write: (key, value, ttlMs) => change(({ writeValue }) => writeValue(key, value, ttlMs)),
      writeIfAbsent: (key, value, ttlMs) => change(({ writeIfAbsent }) => writeIfAbsent(key, value, ttlMs)),
      replace: (key, expected, value, ttlMs) =>
        change(({ replaceValue }) => replaceValue(key, expected, value, ttlMs)),
      remove: (key) => change(({ removeValue }) => removeValue(key)),
      removeIf: (key, expected) => change(({ removeValueIf }) => removeValueIf(key, expected)),
    },
    schedules: createSqliteSchedules(
      (operation) => read(({ schedules }) => operation(schedules)),
      (operation) => change(({ schedules }) => operation(schedules)),
    ),
    tokenBuckets,
    pubsub,
    async open() {
      try {
        createIfMissing(file);
        database = new DatabaseSync(file, { timeout: lockTimeoutMs });
        claimFile(file, database, { applicationId, version: schemaVersion, schema });
        database.exec(schedulesSchema);
        openTables = createTables(database, createPersistentClock(clocks, savedTimeIn(database)));
        isOpenFile = createSameFileCheck(file);
      } catch (error) {
        database?.close();
        throw toStateFileError(file, error);
      }
    },
    problem: () => problem,
    warnings: () => [],
    async close() {
      await change(() => {}).catch(() => {}); // commits the pending changes
      openTables = undefined;
      if (database?.isOpen) database.close();
    },
  };
}

/** `expires` is null for a value that never expires; `expires` and `seen` are milliseconds since 1970. */
const schema = `
CREATE TABLE value (key BLOB PRIMARY KEY, text BLOB NOT NULL, expires REAL) STRICT;
CREATE INDEX value_by_end ON value (expires) WHERE expires IS NOT NULL;
CREATE TABLE clock (seen REAL NOT NULL) STRICT;
INSERT INTO clock VALUES (0);
`;

/** How many expired values each change deletes: more than it can add, so that the file stays as large as its live values. */
const deletedPerChange = 2;
/** How often the time is saved for the next start. Milliseconds. */
const clockSavedEveryMs = 60_000;

type Tables = ReturnType<typeof createTables>;

/**
 * The operations of `KeyValues` and `Schedules`, synchronously. They throw what SQLite throws; changes must run in `transact`.
 *
 * @param now milliseconds since 1970; never runs backwards, not even across restarts
 */
function createTables(database: DatabaseSync, now: () => number) {
  const prepare = (sql: string) => database.prepare(sql);
  const begin = prepare('BEGIN IMMEDIATE');
  const commit = prepare('COMMIT');
  const rollback = prepare('ROLLBACK');
  const find = prepare('SELECT text FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)');
  const upsert = `INSERT INTO value (key, text, expires) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET text = excluded.text, expires = excluded.expires`;
  const write = prepare(upsert);
  const writeIfExpired = prepare(`${upsert} WHERE value.expires <= ?`);
  const remove = prepare('DELETE FROM value WHERE key = ?');
  const deleteExpired = prepare(`DELETE FROM value WHERE rowid IN
    (SELECT rowid FROM value WHERE expires <= ? LIMIT ${deletedPerChange})`);
  const saveClock = prepare('UPDATE clock SET seen = max(seen, ?)');
  let clockSavedAtMs = Number.NEGATIVE_INFINITY;

  /** @returns whether `work` changed a row */
  function change(work: (nowMs: number) => { readonly changes: number | bigint } | undefined): boolean {
    const nowMs = now();
    const isChanged = Number(work(nowMs)?.changes ?? 0) > 0;
    deleteExpired.run(nowMs);
    return isChanged;
  }

  const expiryOf = (nowMs: number, ttlMs: number | undefined) => (ttlMs === undefined ? null : nowMs + ttlMs);
  const currentValue = (key: string, nowMs: number) => find.all(bytesOf(key), nowMs).map(textOf)[0];
  const set = (nowMs: number, key: string, value: string, ttlMs: number | undefined) =>
    write.run(bytesOf(key), bytesOf(value), expiryOf(nowMs, ttlMs));

  return {
    /** Commits all changes that `work` makes, or none if it throws; they are on the disk when this returns. */
    transact(work: () => void): void {
      const isSaveDue = now() - clockSavedAtMs >= clockSavedEveryMs;
      begin.run();
      try {
        work();
        if (isSaveDue) saveClock.run(now());
        commit.run();
      } catch (error) {
        try {
          rollback.run();
        } catch {} // SQLite may have rolled back itself, and then refuses to do it again
        throw error;
      }
      if (isSaveDue) clockSavedAtMs = now();
    },
    readValue: (key: string): string | undefined => currentValue(key, now()),
    writeValue: (key: string, value: string, ttlMs?: number): void =>
      void change((nowMs) => set(nowMs, key, value, ttlMs)),
    writeIfAbsent: (key: string, value: string, ttlMs?: number): boolean =>
      change((nowMs) => writeIfExpired.run(bytesOf(key), bytesOf(value), expiryOf(nowMs, ttlMs), nowMs)),
    replaceValue: (key: string, expected: string, value: string, ttlMs?: number): boolean =>
      change((nowMs) =>
        currentValue(key, nowMs) === expected.toWellFormed() ? set(nowMs, key, value, ttlMs) : undefined,
      ),
    removeValue: (key: string): void => void change(() => remove.run(bytesOf(key))),
    removeValueIf: (key: string, expected: string): boolean =>
      change((nowMs) =>
        currentValue(key, nowMs) === expected.toWellFormed() ? remove.run(bytesOf(key)) : undefined,
      ),
    schedules: createScheduleTables(prepare, now),
  };
}

/** Text is stored as bytes, because NUL ends a text in SQLite. */
const bytesOf = (text: string) => Buffer.from(text);

function textOf({ text }: Readonly<Record<string, unknown>>): string {
  return text instanceof Uint8Array ? Buffer.from(text).toString() : '';
}

/** Applies a change soon. @returns its result once it is on the disk; rejects if the transaction fails */
type GroupCommit = <Result>(change: () => Result) => Promise<Result>;

interface PendingChange {
  /** Applies the change. @returns resolves its promise */
  readonly apply: () => () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits all changes of one event-loop turn in one transaction, because each wait for the disk blocks the process.
 *
 * @param transact runs all or nothing, and returns when the changes are on the disk
 */
export function createGroupCommit(transact: (work: () => void) => void): GroupCommit {
  let pending: PendingChange[] = [];

  function commitAll(): void {
    const changes = pending;
    pending = [];
    let resolves: readonly (() => void)[] = [];
    try {
      transact(() => {
        resolves = changes.map(({ apply }) => apply());
      });
    } catch (error) {
      for (const { reject } of changes) reject(error);
      return;
    }
    for (const resolve of resolves) resolve();
  }

  return (change) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof change>>();
    const apply = () => {
      const result = change();
      return () => resolve(result);
    };
    if (pending.length === 0) setImmediate(commitAll);
    pending.push({ apply, reject });
    return promise;
  };
}

/** The clocks of the machine. Milliseconds. */
interface SystemClocks {
  /** Since 1970; can be set by an administrator. */
  readonly wall: () => number;
  /** Cannot be set; restarts with the machine. */
  readonly monotonic: () => number;
}

const machineClocks: SystemClocks = { wall: Date.now, monotonic: () => performance.now() };

/**
 * Milliseconds since 1970 that never run backwards: the wall clock at the start, continued by the monotonic clock.
 *
 * Setting the wall clock while the process runs has no effect. If it was set back before the start, time continues at the
 * last saved time: an expired value stays expired, and no value outlives its TTL.
 *
 * @param lastSavedMs the last time that an earlier run saved
 */
export function createPersistentClock({ wall, monotonic }: SystemClocks, lastSavedMs: number): () => number {
  const offsetMs = Math.max(wall(), lastSavedMs) - monotonic();
  return () => offsetMs + monotonic();
}

const savedTimeIn = (database: DatabaseSync): number =>
  Number(database.prepare('SELECT seen FROM clock').get()?.seen ?? 0);
