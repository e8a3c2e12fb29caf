/**
 * The writes that this instance has claimed, in its own memory. From there it responds to repeats without the shared state,
 * and stores the writes again if the state loses them.
 */

import { LRUCache } from 'lru-cache';
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
  /** Writes that have ended, and whose outcome is not known. */
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

/** A longer response of the bank is not remembered, only its outcome. Bytes of JSON. */
const maxResponseBytes = 4_096;
/** Estimated memory of an entry without its serialized text; a running write has no such text. Bytes. */
const overheadBytes = 500;

interface RememberedWrite extends OwnWrite {
  /** A running write changes soon, so it is not serialized. Others are buffers, which the garbage collector does not copy. */
  readonly entry: LedgerEntry | Buffer;
}

/** @param maxBytes bound of the memory for all entries; the oldest are dropped first */
export function createOwnWrites(maxBytes: number): OwnWrites {
  let incompleteUntil = Number.NEGATIVE_INFINITY;
  const writes = new LRUCache<string, RememberedWrite>({
    maxSize: maxBytes,
    sizeCalculation: ({ entry }) => overheadBytes + (Buffer.isBuffer(entry) ? entry.length : 0),
    dispose({ expiresAt = Number.POSITIVE_INFINITY }, _id, reason) {
      if (reason === 'evict') incompleteUntil = Math.max(incompleteUntil, expiresAt);
    },
  });
  const isExpired = ({ expiresAt }: OwnWrite) => expiresAt !== undefined && expiresAt <= Date.now();

  return {
    entryOf(id) {
      const write = writes.peek(id);
      if (!write || isExpired(write)) return undefined;
      return Buffer.isBuffer(write.entry) ? parseEntry(write.entry.toString()) : write.entry;
    },
    set(id, write, { sequence = writes.peek(id)?.sequence ?? 0, ttlMs } = {}) {
      const changedAt = Date.now();
      const expiresAt = ttlMs === undefined ? undefined : changedAt + ttlMs;
      const { step } = write.entry;
      const isRunning = step === 'claimed' || step === 'sending';
      writes.set(id, {
        id,
        sequence,
        changedAt,
        expiresAt,
        entry: isRunning ? write.entry : Buffer.from(boundedText(write)),
      });
    },
    delete: (id) => void writes.delete(id),
    *all() {
      for (const write of writes.values()) if (!isExpired(write)) yield write;
    },
    unresolvedIds: () =>
      [...writes.values()]
        .filter(({ expiresAt, entry }) => expiresAt === undefined && Buffer.isBuffer(entry))
        .map(({ id }) => id),
    setSequences(sequenceOf) {
      for (const [id, write] of [...writes.entries()]) {
        const sequence = sequenceOf(id);
        if (sequence !== undefined) writes.set(id, { ...write, sequence });
      }
    },
    isComplete: () => incompleteUntil <= Date.now(),
  };
}

function boundedText({ entry, raw }: SerializedEntry): string {
  if (entry.step !== 'answered' || raw.length <= maxResponseBytes) return raw;
  return serialized(withoutResponse(entry)).raw;
}
