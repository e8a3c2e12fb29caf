/** The entries in the shared state: each step of one is a compare-and-set, so that of two who decide one is first. */

import type { KeyValues, Sets } from '../state/ports.ts';
import {
  isUnresolved,
  type LedgerEntry,
  parseEntry,
  releasedMarker,
  releasedMarkerMs,
  serializeEntry,
} from './ledger-entry.ts';

/** What stands under an id. */
export interface StoredEntry {
  readonly raw: string;
  /** `undefined` if it cannot be read: then nobody knows what it was. */
  readonly entry: LedgerEntry | undefined;
}

/** Every operation throws GatewayError STATE_UNAVAILABLE; what should have been written is then perhaps written. */
export interface LedgerStore {
  /** `undefined` if there is none. */
  read(id: string): Promise<StoredEntry | undefined>;
  /** @param ttlMs how long it lives; for ever if left out, here and below @returns whether there was none before */
  create(id: string, entry: LedgerEntry, ttlMs?: number): Promise<boolean>;
  /** Begins what was given back and still stands there. @returns whether it did */
  replaceReleased(id: string, entry: LedgerEntry, ttlMs?: number): Promise<boolean>;
  /** @returns what stands there now, if what stood there was still `raw` */
  replace(id: string, raw: string, next: LedgerEntry, ttlMs?: number): Promise<string | undefined>;
  /** Gives it back: the next one to look finds none. @returns whether what stood there was still `raw` */
  release(id: string, raw: string): Promise<boolean>;
}

const entryKey = (id: string) => `ledger:entry:${id}`;

export function createLedgerStore(keyValues: KeyValues): LedgerStore {
  return {
    async read(id) {
      const raw = await keyValues.read(entryKey(id));
      return raw === undefined || raw === releasedMarker ? undefined : { raw, entry: parseEntry(raw) };
    },
    create: (id, entry, ttlMs) => keyValues.writeIfAbsent(entryKey(id), serializeEntry(entry), ttlMs),
    replaceReleased: (id, entry, ttlMs) =>
      keyValues.replace(entryKey(id), releasedMarker, serializeEntry(entry), ttlMs),
    async replace(id, raw, next, ttlMs) {
      const text = serializeEntry(next);
      return (await keyValues.replace(entryKey(id), raw, text, ttlMs)) ? text : undefined;
    },
    release: (id, raw) => keyValues.replace(entryKey(id), raw, releasedMarker, releasedMarkerMs),
  };
}

// MERGED HEADER (rewrite or remove):
/* The index of everything that is being sent or in doubt, so that nothing is overlooked because nobody repeats it. */

/**
 * Each throws GatewayError STATE_UNAVAILABLE; what should have been done is then perhaps done, even later.
 *
 * A name is that of one attempt (`nameOf`): once it is closed it never opens again, so that whoever removes it late
 * takes nothing away from the next one.
 */
export interface UnresolvedIndex {
  add(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  list(): Promise<readonly string[]>;
}

/**
 * One attempt at one entry. Operators resolve it by this name, and never mean another one. The attempt comes first: an id
 * can begin with a hyphen, and would be an option on the command line.
 */
export const attemptName = (id: string, attempt: string): string => `${attempt}.${id}`;

/** What a name says; an attempt holds no full stop. */
export function parseAttemptName(name: string): { readonly id: string; readonly attempt: string } {
  const [attempt = '', id = ''] = name.split('.');
  return { id, attempt };
}

/** In as many parts as a name can begin with digits, so that they spread over a cluster. */
const partitions = '0123456789abcdef';
const partitionKey = (name: string) => `ledger:open:${name.charAt(0)}`;

export function createUnresolvedIndex(sets: Sets): UnresolvedIndex {
  return {
    add: (name) => sets.add(partitionKey(name), name),
    remove: (name) => sets.remove(partitionKey(name), name),
    list: async () =>
      (await Promise.all([...partitions].map((part) => sets.members(partitionKey(part))))).flat(),
  };
}

/**
 * Takes a name out of the index because its attempt is closed. An attempt that had lost its entry may begin it anew in
 * between, as a doubt: then the name goes back.
 */
export async function removeResolved(
  name: string,
  open: UnresolvedIndex,
  entries: LedgerStore,
): Promise<void> {
  await open.remove(name);
  const { id, attempt } = parseAttemptName(name);
  const entry = (await entries.read(id))?.entry;
  if (entry?.attempt === attempt && isUnresolved(entry)) await open.add(name);
}
