/** Files that belong together and may be exchanged while they are in use: certificates, their keys, authorities. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** The bytes of a file. @throws Error that names the file, if it cannot be read */
export type ReadFile = (file: string) => Buffer;

/** What was last made of files that fit. */
export interface FileWatcher<Made> {
  current(): Made;
  /** Reads the files again, and takes over what has changed if it fits. Never rejects. */
  poll(): Promise<void>;
}

/** Told of what a look has found. */
export interface FileWatcherEvents<Made> {
  readonly onChange: (made: Made) => void;
  /** The files have changed and cannot be used: told once, until they can be. */
  readonly onInvalid: (why: string) => void;
}

/** Reads from the disk. */
export const readFromDisk: ReadFile = (file) => {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw unreadableError(file, cause);
  }
};

/**
 * Makes something of these files now, and again whenever their contents change.
 *
 * Contents are compared, not times or names: whatever was renamed or linked anew is seen, and nothing else is. They are
 * taken over when two looks have found the same: a file that is still being written, or a certificate whose key is still
 * to come, is not judged halfway (ADR 49).
 *
 * @param make makes it of what it reads, these files alone. @throws Error with a sentence if they do not fit
 * @throws Error what `make` throws at first
 */
export function watchFiles<Made>(
  files: readonly string[],
  make: (read: ReadFile) => Made,
  { onChange, onInvalid }: FileWatcherEvents<Made>,
): FileWatcher<Made> {
  const first = new Map<string, FileContent>(files.map((file) => [file, readFromDisk(file)]));
  let value = make((file) => contentOf(first, file));
  let inUse = first;
  let previous = first;
  let isReported = false;

  function apply(found: ReadonlyMap<string, FileContent>): void {
    try {
      value = make((file) => contentOf(found, file));
      onChange(value);
      inUse = new Map(found);
      isReported = false;
    } catch (cause) {
      if (!isReported) onInvalid(cause instanceof Error ? cause.message : String(cause));
      isReported = true;
    }
  }

  return {
    current: () => value,
    async poll() {
      const found = new Map(
        await Promise.all(files.map(async (file) => [file, await readOrError(file)] as const)),
      );
      const settled = areEqual(found, previous);
      previous = found;
      if (areEqual(found, inUse)) isReported = false;
      else if (settled) apply(found);
    },
  };
}

/** What a file holds, or why that cannot be read. */
type FileContent = Buffer | Error;

const readOrError = (file: string): Promise<FileContent> =>
  readFile(file).catch((cause) => unreadableError(file, cause));

function contentOf(found: ReadonlyMap<string, FileContent>, file: string): Buffer {
  const content = found.get(file) ?? new Error(`${file} is not watched`);
  if (content instanceof Error) throw content;
  return content;
}

const areEqual = (one: ReadonlyMap<string, FileContent>, other: ReadonlyMap<string, FileContent>): boolean =>
  [...one].every(([file, content]) => {
    const found = other.get(file);
    if (content instanceof Error || found instanceof Error)
      return content instanceof Error && found instanceof Error;
    return found?.equals(content) ?? false;
  });

function unreadableError(file: string, cause: unknown): Error {
  const code = cause instanceof Error && 'code' in cause ? cause.code : 'unknown error';
  return new Error(`${file} cannot be read (${code})`, { cause });
}
