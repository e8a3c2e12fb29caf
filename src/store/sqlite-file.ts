/** What is checked before a file is used as a SQLite database, and while it is. */

import { accessSync, closeSync, constants, openSync, realpathSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import {
  corruptFile,
  foreignFile,
  newerFile,
  notRegularFile,
  replacedFile,
  unsavedWal,
} from './sqlite-errors.ts';

/**
 * Creates the file with access for this user alone. An existing file is not opened here: closing it again would release
 * the lock that SQLite holds on it in this process (sqlite.org/howtocorrupt.html, 2.2).
 */
export function createIfMissing(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) closeSync(openSync(file, 'wx', 0o600));
  else if (!found.isFile()) throw notRegularFile(file);
  else accessSync(file, constants.R_OK | constants.W_OK);
}

/**
 * Checks whether the path still leads to the same file. If somebody has removed or replaced it, changes would succeed, and the
 * next start would not find them.
 */
function createSameFileCheck(file: string): () => boolean {
  const opened = statSync(file);
  return () => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.ino === opened.ino && found.dev === opened.dev;
  };
}

interface FileFormat {
  /** PRAGMA application_id: identifies our files. */
  readonly applicationId: number;
  /** The newest PRAGMA user_version that this build knows. */
  readonly version: number;
  /** Creates what an empty file lacks. */
  readonly schema: string;
}

/**
 * Locks the file for this process, checks that it is ours and intact, and marks an empty one as ours.
 *
 * The operating system holds the lock and releases it when the process ends, for whatever reason.
 */
export function claimFile(
  file: string,
  database: DatabaseSync,
  { applicationId, version: newest, schema }: FileFormat,
): void {
  const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE');
  const isEmpty = database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
  const [owner, version] = [pragma('application_id'), Number(pragma('user_version'))];
  if (isEmpty && owner === 0 && version === 0)
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${newest}; ${schema}`);
  else if (owner !== applicationId) throw foreignFile(file);
  else if (version > newest) throw newerFile(file);
  database.exec('COMMIT');
  if (pragma('quick_check(1)') !== 'ok') throw corruptFile(file);
  useWal(database);
}

/**
 * Creates a check, to be called before each transaction or query, whether the paths still lead to the files that are open. If somebody has removed
 * or replaced FILE-wal, its commits are only in the open file: the check writes them to FILE, and creates FILE-wal again.
 *
 * @returns a function that @throws an error of the state file if FILE was removed or replaced, or the commits cannot be written to it
 */
export function createWalGuard(file: string, database: DatabaseSync): () => void {
  const wal = `${realpathSync(file)}-wal`; // SQLite follows symbolic links
  const isSameFile = createSameFileCheck(file);
  let isSameWal = createSameFileCheck(wal);
  return () => {
    const hasWal = isSameWal();
    if (!hasWal) copyWalToFile(file, database);
    if (!isSameFile()) throw replacedFile(file);
    if (hasWal) return;
    database.exec('PRAGMA journal_mode = DELETE'); // also deletes what is now at the path of FILE-wal
    useWal(database);
    isSameWal = createSameFileCheck(wal);
  };
}

/** The first access creates FILE-wal. */
function useWal(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = WAL; SELECT 1 FROM sqlite_schema');
}

/** SQLite has FILE-wal open, even if its path leads elsewhere by now. */
function copyWalToFile(file: string, database: DatabaseSync): void {
  try {
    const result = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    if (result?.busy !== 0 || result.log !== result.checkpointed) throw new Error('it is in use');
  } catch (cause) {
    throw unsavedWal(file, cause);
  }
}
