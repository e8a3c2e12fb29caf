/**
 * The writes that this instance has claimed, in its own memory. From there it responds to repeats without the shared state,
 * and stores the writes again if the state loses them.
 */

import { LRUCache } from 'lru-cache';
import { createTextSlabs, type TextHandle } from '../state/text-slabs.ts';
import {
  type LedgerEntry,
  parseEntry,
  type SerializedEntry,
  serialized,
  withoutResponse,
} from './ledger-entry.ts';

export interface OwnWrite {
  readonly id: string;
  /** The sequence number of the partition after the last fenced write of this entry; `Infinity` while that is running. */
  readonly sequence: number;
  /** When the entry last changed: milliseconds since 1970. */
  readonly changedAt: number;
  /** When the state may forget it: milliseconds since 1970; `undefined` while its outcome is not known. */
  readonly expiresAt: number | undefined;
}

export interface OwnWrites {
  /** The present entry of an id; `undefined` if it is not remembered or has expired. */
  entryOf(id: string): LedgerEntry | undefined;
  /**
   * Remembers the present entry of an id.
   *
   * @param sequence as `OwnWrite.sequence`; without it, the number stays as it is
   * @param ttlMs    how long the state stores the entry, in milliseconds
   */
  set(id: string, write: SerializedEntry, change?: OwnWriteChange): void;
  /** Forgets a write that provably did not reach the bank. */
  delete(id: string): void;
  /** All writes that the state should still hold. */
  all(): Iterable<OwnWrite>;
  /** The ids of the writes that have ended, and whose outcome is not known. */
  unresolvedIds(): readonly string[];
  /** Sets the sequence number of writes; those without a new one keep theirs. */
  setSequences(sequenceOf: (id: string) => number | undefined): void;
  /** Whether all writes that the state should still hold are remembered: none was dropped because the memory was full. */
  isComplete(): boolean;
}

export interface OwnWriteChange {
  readonly sequence?: number;
  readonly ttlMs?: number;
}

/** Of an entry with a longer text, only the outcome is remembered, without the response of the bank. Bytes of JSON. */
const maxResponseBytes = 4_096;
/** Estimated memory of an entry without its serialized text; a running write has no such text. Bytes. */
const overheadBytes = 500;

interface RememberedWrite extends OwnWrite {
  sequence: number;
  /**
   * The entry of a running write changes soon, so it is not serialized. That of an ended write is serialized: a handle if the text
   * is outside of the heap (ADR 86), or the text itself if it does not fit there.
   */
  readonly entry: LedgerEntry | string | TextHandle;
  /** 0 if the entry is not serialized. */
  readonly textLength: number;
}

/** @param maxBytes bound of the memory for all entries; the oldest are dropped first */
export function createOwnWrites(maxBytes: number): OwnWrites {
  let incompleteUntil = Number.NEGATIVE_INFINITY;
  /** As `unresolvedIds`. */
  const unresolved = new Set<string>();
  const slabs = createTextSlabs();
  const writes = new LRUCache<string, RememberedWrite>({
    maxSize: maxBytes,
    sizeCalculation: ({ textLength }) => overheadBytes + textLength,
    dispose({ entry, expiresAt = Number.POSITIVE_INFINITY }, id, reason) {
      if (typeof entry === 'number') slabs.remove(entry);
      if (reason !== 'set') unresolved.delete(id);
      if (reason === 'evict') incompleteUntil = Math.max(incompleteUntil, expiresAt);
    },
  });
  const isExpired = ({ expiresAt }: OwnWrite) => expiresAt !== undefined && expiresAt <= Date.now();

  return {
    entryOf(id) {
      const write = writes.peek(id);
      if (!write || isExpired(write)) return undefined;
      const { entry } = write;
      if (typeof entry === 'object') return entry;
      return parseEntry(typeof entry === 'number' ? slabs.read(entry) : entry);
    },
    set(id, write, { sequence = writes.peek(id)?.sequence ?? 0, ttlMs } = {}) {
      const changedAt = Date.now();
      const expiresAt = ttlMs === undefined ? undefined : changedAt + ttlMs;
      const { step } = write.entry;
      if (step === 'claimed' || step === 'sending') {
        unresolved.delete(id);
        writes.set(id, { id, sequence, changedAt, expiresAt, entry: write.entry, textLength: 0 });
        return;
      }
      if (expiresAt === undefined) unresolved.add(id);
      else unresolved.delete(id);
      const text = boundedText(write);
      const entry = slabs.add(text) ?? text;
      writes.set(id, { id, sequence, changedAt, expiresAt, entry, textLength: text.length });
    },
    delete: (id) => void writes.delete(id),
    *all() {
      for (const write of writes.values()) if (!isExpired(write)) yield write;
    },
    unresolvedIds: () => [...unresolved],
    setSequences(sequenceOf) {
      for (const write of writes.values()) write.sequence = sequenceOf(write.id) ?? write.sequence;
    },
    isComplete: () => incompleteUntil <= Date.now(),
  };
}

/** For a state in the memory of this process, which cannot lose writes that the process remembers. */
export const noOwnWrites: OwnWrites = {
  entryOf: () => undefined,
  set() {},
  delete() {},
  all: () => [],
  unresolvedIds: () => [],
  setSequences() {},
  isComplete: () => true,
};

function boundedText({ entry, raw }: SerializedEntry): string {
  if (entry.step !== 'answered' || raw.length <= maxResponseBytes) return raw;
  return serialized(withoutResponse(entry)).raw;
}
