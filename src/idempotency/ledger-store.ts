/** The ledger in the shared state: its entries, and the index of those whose outcome is not known yet. */

import type { Fence, KeyValues, ReplaceConditions, Sets } from '../state/ports.ts';
import { isUnresolved, type LedgerEntry, parseEntry, type SerializedEntry } from './ledger-entry.ts';

export interface StoredEntry {
  /** The stored text; `replace` and `release` compare it. */
  readonly raw: string;
  /** `undefined` if the text cannot be read; its step is then unknown. */
  readonly entry: LedgerEntry | undefined;
}

/**
 * Entries by id. Every change is a compare-and-set: of two concurrent changes, one wins.
 *
 * Every operation throws GatewayError STATE_UNAVAILABLE; the change may have been made nevertheless. With a fence, it throws
 * EpochMismatchError if the state has lost data. An entry without `ttlMs` (milliseconds) never expires.
 */
export interface LedgerStore {
  read(id: string): Promise<StoredEntry | undefined>;
  /** @returns false if there already is an entry */
  create(id: string, entry: SerializedEntry, ttlMs?: number, fence?: Fence): Promise<boolean>;
  /**
   * Replaces the marker of a released entry.
   *
   * @param marker of an entry that was sent, or not; by default any
   * @returns false if there is none
   */
  replaceReleased(
    id: string,
    entry: SerializedEntry,
    ttlMs?: number,
    fence?: Fence,
    marker?: 'sent' | 'unsent',
  ): Promise<boolean>;
  /** @returns false if the stored text is not `raw`, or the write of `after` was not set */
  replace(
    id: string,
    raw: string,
    next: SerializedEntry,
    ttlMs?: number,
    conditions?: Pick<ReplaceConditions, 'fence' | 'after'>,
  ): Promise<boolean>;
  /** As `replace`, for a change that a failover must not lose. @throws UnconfirmedError */
  replaceConfirmed(id: string, raw: string, next: SerializedEntry, fence?: Fence): Promise<boolean>;
  /**
   * Deletes the entry: the next request can claim the id.
   *
   * @param sentForMs for how long a marker says that the entry was sent, in milliseconds; by default none does
   * @returns false if the stored text is not `raw`
   */
  release(id: string, raw: string, sentForMs?: number): Promise<boolean>;
}

/** Replaces a released entry, and expires at once. */
const releasedMarker = '';
const releasedMarkerMs = 1;
/** Replaces an entry that was released although it was sent. */
const sentMarker = 'sent';

/** @param partitions `State.partitions`: in a cluster, they spread the entries over its nodes */
export function createLedgerStore(keyValues: KeyValues, partitions: readonly string[] = ['']): LedgerStore {
  const entryKey = (id: string) => `ledger:${partitionOf(id, partitions)}entry:${id}`;
  return {
    async read(id) {
      const raw = await keyValues.read(entryKey(id));
      return raw === undefined || raw === releasedMarker || raw === sentMarker
        ? undefined
        : { raw, entry: parseEntry(raw) };
    },
    create: (id, { raw }, ttlMs, fence) => keyValues.writeIfAbsent(entryKey(id), raw, ttlMs, fence),
    async replaceReleased(id, { raw }, ttlMs, fence, marker) {
      const replace = (text: string) => keyValues.replace(entryKey(id), text, raw, ttlMs, { fence });
      return (
        (marker !== 'sent' && (await replace(releasedMarker))) || (marker !== 'unsent' && replace(sentMarker))
      );
    },
    replace: (id, raw, next, ttlMs, conditions) =>
      keyValues.replace(entryKey(id), raw, next.raw, ttlMs, conditions),
    replaceConfirmed: (id, raw, next, fence) =>
      keyValues.replace(entryKey(id), raw, next.raw, undefined, { fence, confirmedBy: 'replicas' }),
    release: (id, raw, sentForMs) =>
      sentForMs === undefined
        ? keyValues.replace(entryKey(id), raw, releasedMarker, releasedMarkerMs)
        : keyValues.replace(entryKey(id), raw, sentMarker, sentForMs),
  };
}

/** The partition of an entry. Ids are base64url: their first character spreads them over 64 partitions. */
export const partitionOf = (id: string, partitions: readonly string[]): string =>
  partitions[base64url.indexOf(id.charAt(0)) % partitions.length] ?? '';

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Names of all attempts that are being sent or in doubt. Recovery finds them here even if no TPP repeats the request.
 *
 * Every operation throws GatewayError STATE_UNAVAILABLE; the change may have been made nevertheless, even later. An
 * attempt (see `attemptName`) never becomes unresolved again, so a late removal cannot affect the next attempt.
 */
export interface UnresolvedIndex {
  add(name: string): Promise<void>;
  /** As `add`, for a name that a failover must not lose. @throws UnconfirmedError */
  addConfirmed(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  list(): Promise<readonly string[]>;
}

/** The first digit of a name selects its index set, so that the sets spread over a Redis cluster. */
const indexDigits = '0123456789abcdef';
const indexKey = (name: string) => `ledger:open:${name.charAt(0)}`;

export function createUnresolvedIndex(sets: Sets): UnresolvedIndex {
  return {
    add: (name) => sets.add(indexKey(name), name),
    addConfirmed: (name) => sets.add(indexKey(name), name, 'replicas'),
    remove: (name) => sets.remove(indexKey(name), name),
    list: async () =>
      (await Promise.all([...indexDigits].map((digit) => sets.members(indexKey(digit))))).flat(),
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
