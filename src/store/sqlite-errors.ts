/** Errors of the state file, as sentences that say what to do. */

import { dirname } from 'node:path';

/** An error of the state file with a text for operators. */
class StateFileError extends Error {}

/** @param error what node:fs or node:sqlite threw */
export function toStateFileError(file: string, error: unknown): StateFileError {
  if (error instanceof StateFileError) return error;
  const [what, remedy] = describe(file, error);
  return new StateFileError(`state.file: ${file} ${what}; ${remedy}`, { cause: error });
}

export const corruptFile = (file: string): StateFileError =>
  new StateFileError(`state.file: ${file} ${corruptText.join('; ')}`);

export const foreignFile = (file: string): StateFileError =>
  new StateFileError(`state.file: ${file} belongs to another application; use another file`);

export const newerFile = (file: string): StateFileError =>
  new StateFileError(
    `state.file: ${file} was written by a later version of Penstock; run that version, or use another file`,
  );

export const notRegularFile = (file: string): StateFileError =>
  new StateFileError(`state.file: ${file} is a directory or a device; use a regular file`);

export const replacedFile = (file: string): StateFileError =>
  new StateFileError(
    `state.file: ${file} was removed or replaced while the gateway was using it; restore the original file, or stop the gateway before you replace it`,
  );

/** @param cause what SQLite threw */
export function unsavedWal(file: string, cause: unknown): StateFileError {
  const [what, remedy] = describe(file, cause);
  return new StateFileError(
    `state.file: ${file}-wal was removed or replaced while the gateway was using it, and ${file} ${what}; ${remedy}, and do not stop the gateway before: only it still has the last commits`,
    { cause },
  );
}

const corruptText = [
  'is damaged',
  'restore a backup, or move the file away to start with an empty state; this loses the data since the backup, or all data',
] as const;

function describe(file: string, error: unknown): readonly [what: string, remedy: string] {
  switch (codeOf(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return ['cannot be created', `the directory ${dirname(file)} does not exist; create it`];
    case 'EACCES':
    case 'EPERM':
      return [
        'cannot be read and written by this user',
        'change the owner or the mode of the file and its directory',
      ];
    case 'EROFS':
    case resultCode.readOnly:
      return ['cannot be written', 'the file, its directory or its disk is read-only; use another file'];
    case 'ENOSPC':
    case 'EDQUOT':
    case resultCode.full:
      return ['cannot grow: its disk is full', 'free some space'];
    case resultCode.busy:
      return ['is in use by another process', 'stop that process, or use another file'];
    case resultCode.cannotOpen:
      return ['cannot be opened', 'allow this user to create files in its directory'];
    case resultCode.notDatabase:
      return ['is not a state file of Penstock, or is damaged', 'use another file, or restore a backup'];
    case resultCode.corrupt:
    case resultCode.error: // the statements are valid, so a table is missing
      return corruptText;
    default:
      return [
        `cannot be read or written (${error instanceof Error ? error.message : error})`,
        'check its disk',
      ];
  }
}

/** Primary result codes of SQLite (sqlite.org/rescode.html): the low byte of an error code. */
const resultCode = {
  error: 1,
  busy: 5,
  readOnly: 8,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notDatabase: 26,
} as const;

/** SQLite's primary result code, or the name of a system error. */
function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff;
  return 'code' in error ? error.code : undefined;
}
