/** Watches files that belong together and may be replaced while in use: certificates, their keys, authorities. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Reads a file. @throws Error that names the file, if it cannot be read */
export type ReadFile = (file: string) => Buffer;

/** The value that was built from the last valid contents of the files. */
export interface FileWatcher<Value> {
  current(): Value;
  /** Reads the files again, and builds a new value from changed contents if they are valid. Never rejects. */
  poll(): Promise<void>;
}

export interface FileWatcherEvents<Value> {
  readonly onChange: (value: Value) => void;
  /** The files have changed and are invalid. Called once, until they are valid again. */
  readonly onInvalid: (why: string) => void;
}

export const readFromDisk: ReadFile = (file) => {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw unreadableError(file, cause);
  }
};

/**
 * Builds a value from these files now, and again when a poll finds other contents.
 *
 * Compares contents, not times or names: a renamed file or a changed link is a change only if the bytes differ. Contents
 * count when two polls have found the same: a file that is still being written, or a certificate whose new key has not
 * arrived yet, is not judged halfway (ADR 49).
 *
 * @param build builds the value from the given files. @throws Error with a sentence if they are invalid
 * @throws Error if a file cannot be read, and the error of the first `build`
 */
export function watchFiles<Value>(
  files: readonly string[],
  build: (read: ReadFile) => Value,
  { onChange, onInvalid }: FileWatcherEvents<Value>,
): FileWatcher<Value> {
  const first = new Map<string, FileContent>(files.map((file) => [file, readFromDisk(file)]));
  let value = build((file) => contentOf(first, file));
  let inUse = first;
  let previous = first;
  let isReported = false;

  function apply(contents: ReadonlyMap<string, FileContent>): void {
    try {
      value = build((file) => contentOf(contents, file));
      onChange(value);
      inUse = new Map(contents);
      isReported = false;
    } catch (cause) {
      if (!isReported) onInvalid(cause instanceof Error ? cause.message : String(cause));
      isReported = true;
    }
  }

  return {
    current: () => value,
    async poll() {
      const contents = new Map(
        await Promise.all(files.map(async (file) => [file, await readOrError(file)] as const)),
      );
      const isStable = areEqual(contents, previous);
      previous = contents;
      if (areEqual(contents, inUse)) isReported = false;
      else if (isStable) apply(contents);
    },
  };
}

/** The bytes of a file, or the error of reading it. */
type FileContent = Buffer | Error;

const readOrError = (file: string): Promise<FileContent> =>
  readFile(file).catch((cause) => unreadableError(file, cause));

function contentOf(contents: ReadonlyMap<string, FileContent>, file: string): Buffer {
  const content = contents.get(file) ?? new Error(`${file} is not watched`);
  if (content instanceof Error) throw content;
  return content;
}

const areEqual = (one: ReadonlyMap<string, FileContent>, other: ReadonlyMap<string, FileContent>): boolean =>
  [...one].every(([file, content]) => {
    const otherContent = other.get(file);
    if (content instanceof Error || otherContent instanceof Error)
      return content instanceof Error && otherContent instanceof Error;
    return otherContent?.equals(content) ?? false;
  });

function unreadableError(file: string, cause: unknown): Error {
  const code = cause instanceof Error && 'code' in cause ? cause.code : 'unknown error';
  return new Error(`${file} cannot be read (${code})`, { cause });
}
