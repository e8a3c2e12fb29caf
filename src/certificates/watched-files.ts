/** Files that belong together and may be exchanged while they are in use: certificates, their keys, authorities. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** The bytes of a file. @throws Error that names the file, if it cannot be read */
export type Read = (file: string) => Buffer;

/** What was last made of files that fit. */
export interface Watched<Made> {
  current(): Made;
  /** Reads the files again, and takes over what has changed if it fits. Never rejects. */
  look(): Promise<void>;
}

/** Told of what a look has found. */
export interface FileNews<Made> {
  readonly renewed: (made: Made) => void;
  /** The files have changed and cannot be used: told once, until they can be. */
  readonly kept: (why: string) => void;
}

/** Reads from the disk. */
export const readNow: Read = (file) => {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw unreadable(file, cause);
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
  make: (read: Read) => Made,
  { renewed, kept }: FileNews<Made>,
): Watched<Made> {
  const first = new Map<string, Found>(files.map((file) => [file, readNow(file)]));
  let made = make((file) => held(first, file));
  let inUse = first;
  let before = first;
  let told = false;

  function judge(found: ReadonlyMap<string, Found>): void {
    try {
      made = make((file) => held(found, file));
      renewed(made);
      inUse = new Map(found);
      told = false;
    } catch (cause) {
      if (!told) kept(cause instanceof Error ? cause.message : String(cause));
      told = true;
    }
  }

  return {
    current: () => made,
    async look() {
      const found = new Map(await Promise.all(files.map(async (file) => [file, await find(file)] as const)));
      const settled = same(found, before);
      before = found;
      if (same(found, inUse)) told = false;
      else if (settled) judge(found);
    },
  };
}

/** What a file holds, or why that cannot be read. */
type Found = Buffer | Error;

const find = (file: string): Promise<Found> => readFile(file).catch((cause) => unreadable(file, cause));

function held(found: ReadonlyMap<string, Found>, file: string): Buffer {
  const content = found.get(file) ?? new Error(`${file} is not watched`);
  if (content instanceof Error) throw content;
  return content;
}

const same = (one: ReadonlyMap<string, Found>, other: ReadonlyMap<string, Found>): boolean =>
  [...one].every(([file, content]) => {
    const found = other.get(file);
    if (content instanceof Error || found instanceof Error)
      return content instanceof Error && found instanceof Error;
    return found?.equals(content) ?? false;
  });

function unreadable(file: string, cause: unknown): Error {
  const code = cause instanceof Error && 'code' in cause ? cause.code : 'unknown error';
  return new Error(`${file} cannot be read (${code})`, { cause });
}
