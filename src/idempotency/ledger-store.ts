/** The ledger in the shared state: its entries, and the index of those whose outcome is not known yet. */

import type { KeyValues, Sets } from '../state/ports.ts';
import { isUnresolved, type LedgerEntry, parseEntry, serializeEntry } from './ledger-entry.ts';

export interface StoredEntry {
  /** The stored text; `replace` and `release` compare it. */
  readonly raw: string;
  /** `undefined` if the text cannot be read; its step is then unknown. */
  readonly entry: LedgerEntry | undefined;
}

/**
 * Entries by id. Every change is a compare-and-set: of two concurrent changes, one wins.
 *
 * Every operation throws GatewayError STATE_UNAVAILABLE; the change may have been made nevertheless. An entry without
 * `ttlMs` (milliseconds) never expires.
 */
export interface LedgerStore {
  read(id: string): Promise<StoredEntry | undefined>;
  /** @returns false if there already is an entry */
  create(id: string, entry: LedgerEntry, ttlMs?: number): Promise<boolean>;
  /** Replaces the marker of a released entry. @returns false if there is none */
  replaceReleased(id: string, entry: LedgerEntry, ttlMs?: number): Promise<boolean>;
  /** @returns the new stored text, or `undefined` if the stored text is not `raw` */
  replace(id: string, raw: string, next: LedgerEntry, ttlMs?: number): Promise<string | undefined>;
  /** Deletes the entry: the next request can claim the id. @returns false if the stored text is not `raw` */
  release(id: string, raw: string): Promise<boolean>;
}

/** Replaces a released entry until it expires: the state has no compare-and-delete. */
const releasedMarker = '';
const releasedMarkerMs = 1;

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

/**
 * Names of all attempts that are being sent or in doubt. Recovery finds them here even if no TPP repeats the request.
 *
 * Every operation throws GatewayError STATE_UNAVAILABLE; the change may have been made nevertheless, even later. An
 * attempt (see `attemptName`) never becomes unresolved again, so a late removal cannot affect the next attempt.
 */
export interface UnresolvedIndex {
  add(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  list(): Promise<readonly string[]>;
}

/** Index sets by the first digit of the name, so that they spread over a Redis cluster. */
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
 * The name of one attempt at one entry; operators resolve exactly this attempt. The attempt comes first because an id
 * can begin with a hyphen, which the command line would read as an option.
 */
export const attemptName = (id: string, attempt: string): string => `${attempt}.${id}`;

/** The inverse of `attemptName`; an attempt contains no full stop. */
export function parseAttemptName(name: string): { readonly id: string; readonly attempt: string } {
  const [attempt = '', id = ''] = name.split('.');
  return { id, attempt };
}

/**
 * Removes a resolved attempt from the index. An attempt whose entry was lost may restore it as in doubt at the same
 * time: then its name is added again.
 */
export async function removeResolved(
  name: string,
  index: UnresolvedIndex,
  store: LedgerStore,
): Promise<void> {
  await index.remove(name);
  const { id, attempt } = parseAttemptName(name);
  const entry = (await store.read(id))?.entry;
  if (entry?.attempt === attempt && isUnresolved(entry)) await index.add(name);
}
