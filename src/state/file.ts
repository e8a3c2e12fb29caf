/** State in one file, for one instance: it outlives the process, and a power cut. Only this file knows node:sqlite. */

import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { stateUnavailable } from '../flow/errors.ts';
import { createChanges } from './file-changes.ts';
import { damaged, faultOf, foreign, isLasting, newer, noFile } from './file-faults.ts';
import { createTables, type Statement, type Tables, tables, timeSeen } from './file-tables.ts';
import { type Clocks, clocksOfMachine, createLastingClock } from './lasting-clock.ts';
import { createMemoryState } from './memory.ts';
import type { KeyValues, Sets, State } from './ports.ts';

/** "Pstk": whose file it is (PRAGMA application_id). */
const applicationId = 0x5073746b;
/** Of the tables; a later form takes another number. */
const version = 1;
/** How long `open` waits for another process to let go of the file. It holds up this one meanwhile. Milliseconds. */
const lockedMs = 500;

/**
 * The state in a file; not open before `open`. Turns and messages are this process's own, for no other can share the file.
 *
 * @param onChange told once whenever trouble begins, ends, or becomes another; all is well at first
 */
export function createFileState(
  file: string,
  onChange: (trouble: string | undefined) => void = () => {},
  clocks: Clocks = clocksOfMachine,
): State {
  let database: DatabaseSync | undefined;
  let held: Tables | undefined;
  let trouble: string | undefined;
  let isLost = false;

  const note = (next: string | undefined) => {
    if (next === trouble || isLost) return;
    trouble = next;
    onChange(next);
  };
  const tablesNow = (): Tables => held ?? fail('it is not open');
  const answered = async <Answer>(operation: () => Answer | Promise<Answer>): Promise<Answer> => {
    try {
      return await operation();
    } catch (error) {
      const fault = faultOf(file, error);
      if (held) note(fault.message);
      isLost ||= isLasting(error);
      throw stateUnavailable(fault);
    }
  };
  const changes = createChanges((work) => {
    tablesNow().transact(work);
    note(undefined); // only a change shows that the disk takes changes
  });
  const ask: Way = (operation) => answered(() => operation(tablesNow()));
  const change: Way = (operation) => answered(() => changes(() => operation(tablesNow())));
  const { reservations, announcements } = createMemoryState(clocks.steady);

  return {
    keyValues: keyValuesBy(ask, change),
    sets: setsBy(ask, change),
    reservations,
    announcements,
    async open() {
      try {
        createIfMissing(file);
        database = new DatabaseSync(file, { timeout: lockedMs });
        prepareFile(file, database);
        const prepare = statementsOf(database);
        held = createTables(prepare, createLastingClock(clocks, timeSeen(prepare)));
      } catch (error) {
        database?.close();
        throw faultOf(file, error);
      }
    },
    trouble: () => trouble,
    async close() {
      await change(() => {}).catch(() => {}); // whatever waits goes first
      held = undefined;
      if (database?.isOpen) database.close();
    },
  };
}

function fail(what: string): never {
  throw new Error(what);
}

type Way = <Answer>(operation: (all: Tables) => Answer) => Promise<Answer>;

const keyValuesBy = (ask: Way, change: Way): KeyValues => ({
  read: (key) => ask((all) => all.read(key)),
  write: (key, value, ttlMs) => change((all) => all.write(key, value, ttlMs)),
  writeIfAbsent: (key, value, ttlMs) => change((all) => all.writeIfAbsent(key, value, ttlMs)),
  replace: (key, expected, value, ttlMs) => change((all) => all.replace(key, expected, value, ttlMs)),
  remove: (key) => change((all) => all.remove(key)),
});

const setsBy = (ask: Way, change: Way): Sets => ({
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
  else if (!found.isFile()) throw noFile(file);
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
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}; ${tables}`);
  } else if (owner !== applicationId) {
    throw foreign(file);
  } else if (form > version) {
    throw newer(file);
  }
  database.exec('COMMIT');
  if (pragma('quick_check(1)') !== 'ok') throw damaged(file);
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
