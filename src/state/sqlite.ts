/** State in one file, for one instance: it outlives the process, and a power cut. Only this file knows node:sqlite. */

import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { stateUnavailable } from '../request/errors.ts';
import { createMemoryState } from './memory.ts';
import type { KeyValues, Sets, State } from './ports.ts';
import {
  corruptFile,
  foreignFile,
  isPermanent,
  newerFile,
  notRegularFile,
  toStateFileError,
} from './sqlite-errors.ts';

/** "Pstk": whose file it is (PRAGMA application_id). */
const applicationId = 0x5073746b;
/** Of the tables; a later form takes another number. */
const schemaVersion = 1;
/** How long `open` waits for another process to let go of the file. It holds up this one meanwhile. Milliseconds. */
const lockTimeoutMs = 500;

/**
 * The state in a file; not open before `open`. Turns and messages are this process's own, for no other can share the file.
 *
 * @param onChange told once whenever trouble begins, ends, or becomes another; all is well at first
 */
export function createSqliteState(
  file: string,
  onChange: (problem: string | undefined) => void = () => {},
  systemClocks: SystemClocks = machineClocks,
): State {
  let database: DatabaseSync | undefined;
  let openTables: Tables | undefined;
  let trouble: string | undefined;
  let isUnusable = false;

  const setProblem = (next: string | undefined) => {
    if (next === trouble || isUnusable) return;
    trouble = next;
    onChange(next);
  };
  const tables = (): Tables => openTables ?? fail('it is not open');
  const answered = async <Answer>(operation: () => Answer | Promise<Answer>): Promise<Answer> => {
    try {
      return await operation();
    } catch (error) {
      const fault = toStateFileError(file, error);
      if (openTables) setProblem(fault.message);
      isUnusable ||= isPermanent(error);
      throw stateUnavailable(fault);
    }
  };
  const groupCommit = createGroupCommit((work) => {
    tables().transact(work);
    setProblem(undefined); // only a change shows that the disk takes changes
  });
  const ask: RunOnTables = (operation) => answered(() => operation(tables()));
  const change: RunOnTables = (operation) => answered(() => groupCommit(() => operation(tables())));
  const { tokenBuckets, pubsub } = createMemoryState(systemClocks.steady);

  return {
    keyValues: keyValuesBy(ask, change),
    sets: setsBy(ask, change),
    tokenBuckets,
    pubsub,
    async open() {
      try {
        createIfMissing(file);
        database = new DatabaseSync(file, { timeout: lockTimeoutMs });
        prepareFile(file, database);
        const prepare = statementsOf(database);
        openTables = createTables(prepare, createPersistentClock(systemClocks, lastSavedTime(prepare)));
      } catch (error) {
        database?.close();
        throw toStateFileError(file, error);
      }
    },
    problem: () => trouble,
    async close() {
      await change(() => {}).catch(() => {}); // whatever waits goes first
      openTables = undefined;
      if (database?.isOpen) database.close();
    },
  };
}

function fail(what: string): never {
  throw new Error(what);
}

type RunOnTables = <Answer>(operation: (all: Tables) => Answer) => Promise<Answer>;

const keyValuesBy = (ask: RunOnTables, change: RunOnTables): KeyValues => ({
  read: (key) => ask((all) => all.read(key)),
  write: (key, value, ttlMs) => change((all) => all.write(key, value, ttlMs)),
  writeIfAbsent: (key, value, ttlMs) => change((all) => all.writeIfAbsent(key, value, ttlMs)),
  replace: (key, expected, value, ttlMs) => change((all) => all.replace(key, expected, value, ttlMs)),
  remove: (key) => change((all) => all.remove(key)),
});

const setsBy = (ask: RunOnTables, change: RunOnTables): Sets => ({
  add: (key, member) => change((all) => all.addMember(key, member)),
  remove: (key, member) => change((all) => all.removeMember(key, member)),
  members: (key) => ask((all) => all.members(key)),
});

/**
 * For this user alone. An existing file is not opened here: closing it again would take from SQLite the lock that this
 * process may hold on it (sqlite.org/howtocorrupt.html, 2.2).
 */
function createIfMissing(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) closeSync(openSync(file, 'wx', 0o600));
  else if (!found.isFile()) throw notRegularFile(file);
  else accessSync(file, constants.R_OK | constants.W_OK);
}

/**
 * Takes the file for this process alone, sees whether it is ours and sound, and makes the tables in an empty one.
 *
 * The lock is one of the system's: it ends with the process, however that ends.
 */
function prepareFile(file: string, database: DatabaseSync): void {
  const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE');
  const isEmpty = database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
  const [owner, form] = [pragma('application_id'), Number(pragma('user_version'))];
  if (isEmpty && owner === 0 && form === 0) {
    database.exec(
      `PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}; ${schema}`,
    );
  } else if (owner !== applicationId) {
    throw foreignFile(file);
  } else if (form > schemaVersion) {
    throw newerFile(file);
  }
  database.exec('COMMIT');
  if (pragma('quick_check(1)') !== 'ok') throw corruptFile(file);
  database.exec('PRAGMA journal_mode = WAL');
}

const statementsOf =
  (database: DatabaseSync) =>
  (sql: string): Statement => {
    const statement = database.prepare(sql);
    return {
      run: (...cells) => Number(statement.run(...cells).changes),
      all: (...cells) => statement.all(...cells),
    };
  };

// MERGED HEADER (rewrite or remove):
/* What stands in the file of a state: values, members of sets, and the time, as SQL. */

/** A cell: texts are bytes, for NUL ends a text of SQLite's. */
type Cell = Uint8Array | number | null;

/** A prepared statement. */
export interface Statement {
  /** @returns how many rows it changed */
  run(...cells: readonly Cell[]): number;
  all(...cells: readonly Cell[]): readonly Readonly<Record<string, unknown>>[];
}

/** `KeyValues` and `Sets`, at once. Every operation throws what SQLite throws; those that change go through `transact`. */
export interface Tables {
  /** Makes all changes that `work` makes, or none if it throws; they are on the disk when it comes back. */
  transact(work: () => void): void;
  read(key: string): string | undefined;
  write(key: string, value: string, ttlMs?: number): void;
  writeIfAbsent(key: string, value: string, ttlMs?: number): boolean;
  replace(key: string, expected: string, value: string, ttlMs?: number): boolean;
  remove(key: string): void;
  addMember(key: string, member: string): void;
  removeMember(key: string, member: string): void;
  members(key: string): readonly string[];
}

/** In an empty database. A value without `expires` lives for ever; `expires` and `seen` are milliseconds since 1970. */
const schema = `
CREATE TABLE value (key BLOB PRIMARY KEY, text BLOB NOT NULL, expires REAL) STRICT;
CREATE INDEX value_by_end ON value (expires) WHERE expires IS NOT NULL;
CREATE TABLE member (key BLOB, text BLOB, PRIMARY KEY (key, text)) STRICT, WITHOUT ROWID;
CREATE TABLE clock (seen REAL NOT NULL) STRICT;
INSERT INTO clock VALUES (0);
`;

/** How many expired values each change removes: more than it can add, so that the file is as large as what lives in it. */
const expiredPerChange = 2;
/** How often the time is noted, for the next start. Milliseconds. */
const clockSavedEveryMs = 60_000;

/** @returns the last time that an earlier run noted. Milliseconds since 1970 */
const lastSavedTime = (prepare: (sql: string) => Statement): number =>
  Number(prepare('SELECT seen FROM clock').all()[0]?.seen ?? 0);

/** @param now milliseconds since 1970, never backwards, across restarts */
function createTables(prepare: (sql: string) => Statement, now: () => number): Tables {
  const begin = prepare('BEGIN IMMEDIATE');
  const commit = prepare('COMMIT');
  const rollback = prepare('ROLLBACK');
  const find = prepare('SELECT text FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)');
  const upsert = `INSERT INTO value (key, text, expires) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET text = excluded.text, expires = excluded.expires`;
  const write = prepare(upsert);
  const writeIfExpired = prepare(`${upsert} WHERE value.expires <= ?`);
  const remove = prepare('DELETE FROM value WHERE key = ?');
  const sweep = prepare(`DELETE FROM value WHERE rowid IN
    (SELECT rowid FROM value WHERE expires <= ? LIMIT ${expiredPerChange})`);
  const add = prepare('INSERT INTO member VALUES (?, ?) ON CONFLICT DO NOTHING');
  const drop = prepare('DELETE FROM member WHERE key = ? AND text = ?');
  const list = prepare('SELECT text FROM member WHERE key = ?');
  const saveClock = prepare('UPDATE clock SET seen = max(seen, ?)');
  let clockSavedAtMs = Number.NEGATIVE_INFINITY;

  function change(work: (nowMs: number) => number): boolean {
    const nowMs = now();
    const changed = work(nowMs) > 0;
    sweep.run(nowMs);
    return changed;
  }

  /** SQLite may have done so itself, and then says that there is nothing to undo. */
  function rollBack(): void {
    try {
      rollback.run();
    } catch {}
  }

  const expiryOf = (nowMs: number, ttlMs: number | undefined) => (ttlMs === undefined ? null : nowMs + ttlMs);
  const currentValue = (key: string, nowMs: number) => find.all(bytesOf(key), nowMs).map(textIn)[0];
  const set = (nowMs: number, key: string, value: string, ttlMs: number | undefined) =>
    write.run(bytesOf(key), bytesOf(value), expiryOf(nowMs, ttlMs));

  return {
    transact(work) {
      const isDue = now() - clockSavedAtMs >= clockSavedEveryMs;
      begin.run();
      try {
        work();
        if (isDue) saveClock.run(now());
        commit.run();
      } catch (error) {
        rollBack();
        throw error;
      }
      if (isDue) clockSavedAtMs = now();
    },
    read: (key) => currentValue(key, now()),
    write: (key, value, ttlMs) => void change((nowMs) => set(nowMs, key, value, ttlMs)),
    writeIfAbsent: (key, value, ttlMs) =>
      change((nowMs) => writeIfExpired.run(bytesOf(key), bytesOf(value), expiryOf(nowMs, ttlMs), nowMs)),
    replace: (key, expected, value, ttlMs) =>
      change((nowMs) =>
        currentValue(key, nowMs) === expected.toWellFormed() ? set(nowMs, key, value, ttlMs) : 0,
      ),
    remove: (key) => void change(() => remove.run(bytesOf(key))),
    addMember: (key, member) => void change(() => add.run(bytesOf(key), bytesOf(member))),
    removeMember: (key, member) => void change(() => drop.run(bytesOf(key), bytesOf(member))),
    members: (key) => list.all(bytesOf(key)).map(textIn),
  };
}

const bytesOf = (text: string) => Buffer.from(text);

function textIn({ text }: Readonly<Record<string, unknown>>): string {
  return text instanceof Uint8Array ? Buffer.from(text).toString() : '';
}

// MERGED HEADER (rewrite or remove):
/* Changes that come at the same time go to the disk together: each wait for the disk holds up the whole process. */

/** Makes a change soon. @returns its answer, once it is on the disk; rejects if none of those that went together is */
export type GroupCommit = <Answer>(change: () => Answer) => Promise<Answer>;

interface PendingChange {
  /** Makes the change. @returns tells its answer */
  readonly apply: () => () => void;
  readonly reject: (error: unknown) => void;
}

/** @param transact runs all or nothing, and comes back when it is on the disk */
export function createGroupCommit(transact: (work: () => void) => void): GroupCommit {
  let pending: PendingChange[] = [];

  function commitAll(): void {
    const all = pending;
    pending = [];
    let tell: readonly (() => void)[] = [];
    try {
      transact(() => {
        tell = all.map(({ apply }) => apply());
      });
    } catch (error) {
      for (const { reject } of all) reject(error);
      return;
    }
    for (const answer of tell) answer();
  }

  return (change) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof change>>();
    const make = () => {
      const answer = change();
      return () => resolve(answer);
    };
    if (pending.length === 0) setImmediate(commitAll);
    pending.push({ apply: make, reject: reject });
    return promise;
  };
}

// MERGED HEADER (rewrite or remove):
/* A time for what must expire although the process was started anew meanwhile. */

/** The clocks of the machine. Milliseconds. */
export interface SystemClocks {
  /** Since 1970; somebody may set it. */
  readonly wall: () => number;
  /** On a clock that nobody sets, and that begins anew with the machine. */
  readonly steady: () => number;
}

const machineClocks: SystemClocks = { wall: Date.now, steady: () => performance.now() };

/**
 * Milliseconds since 1970 that never run backwards: from the wall clock at the start, then steadily.
 *
 * Whoever sets the clock while it runs changes nothing. If it was set back before the start, time goes on from the last
 * that is known: what has expired stays so, and nothing lives longer than it was given.
 *
 * @param lastSavedMs the last time that an earlier run is known to have seen
 */
export function createPersistentClock({ wall, steady }: SystemClocks, lastSavedMs: number): () => number {
  const offsetMs = Math.max(wall(), lastSavedMs) - steady();
  return () => offsetMs + steady();
}
