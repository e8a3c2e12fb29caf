/**
 * What this instance has written to the ledger lately. A failover of PostgreSQL to an asynchronous standby loses the last commits: then
 * it is written again, before anybody may repeat such a payment (ADR 122).
 */

import { keyTextOf, type LedgerKey, type LedgerRow } from '../store/ledger.ts';

/** A standby that is further behind loses writes. Milliseconds. */
const keptMs = 60_000;
/** Beyond it, the oldest are forgotten. */
const maxBytes = 64 * 1024 * 1024;
/** Of a write without its answer: measured. */
const bytesOfWrite = 2_048;

export interface RecentWrite {
  readonly key: LedgerKey;
  readonly attempt: string;
  /** Where the write has got to. */
  readonly step: 'sending' | 'answered' | 'in-doubt' | 'released';
  /** Of the answer. */
  readonly bytes: number;
  /** From when on an operator may say that it did not happen, and its row is gone; milliseconds of `performance.now()`. Infinity if never. */
  readonly resolvableAtMs: number;
  /** Has no effect if the database has not lost it. It must not hold the request: only `bytes` are counted. */
  readonly writeAgain: () => Promise<unknown>;
}

export type RecentWrites = ReturnType<typeof createRecentWrites>;

interface RecentWriteOptions {
  readonly keepsNone?: boolean;
  /** Milliseconds. */
  readonly now?: () => number;
}

export function createRecentWrites(
  read: (key: LedgerKey) => Promise<LedgerRow | undefined>,
  { keepsNone = false, now = () => performance.now() }: RecentWriteOptions = {},
) {
  /** By key; the oldest first. Those that are being sent stay. */
  const writes = new Map<string, RecentWrite & { readonly writtenAtMs: number }>();
  let bytes = 0;
  /** When something was forgotten before its time. */
  let evictedAtMs = Number.NEGATIVE_INFINITY;

  function forget(key: string): void {
    const known = writes.get(key);
    if (!known) return;
    bytes -= bytesOfWrite + known.bytes;
    writes.delete(key);
  }

  async function isLost({ key, attempt, step }: RecentWrite): Promise<boolean> {
    const row = await read(key);
    const isOwn = row?.attempt === attempt;
    return step === 'released' ? isOwn && row.step !== step : !isOwn || row.step !== step;
  }

  /** What changes in the meantime is looked at again: its own statement may not have found the row that is just being written. */
  async function writeBackOne(key: string): Promise<boolean> {
    let wasLost = false;
    for (;;) {
      const write = writes.get(key);
      if (!write || !(await isLost(write))) return wasLost;
      wasLost = true;
      if (writes.get(key) === write) await write.writeAgain();
      if (writes.get(key) === write) return true;
    }
  }

  return {
    /** Replaces what was written with this key before. */
    keep(write: RecentWrite): void {
      if (keepsNone) return;
      const key = keyTextOf(write.key);
      forget(key);
      bytes += bytesOfWrite + write.bytes;
      writes.set(key, { ...write, writtenAtMs: now() });
      for (const [oldest, { step }] of writes) {
        if (bytes <= maxBytes) return;
        if (step === 'sending') continue;
        forget(oldest);
        evictedAtMs = now();
      }
    },

    /** Whether a failover now may lose writes of the last minute: there were too many. */
    hasForgottenTooMuch: (): boolean => now() - evictedAtMs < keptMs,

    /** To be called every second, as long as the database answers: an outage can end with a failover to what was there before it. */
    forgetOld(): void {
      const before = now() - keptMs;
      for (const [key, { step, writtenAtMs }] of writes)
        if (writtenAtMs < before && step !== 'sending') forget(key);
    },

    /**
     * Writes back what the database has lost of this key, after a claim of it that should not have succeeded: a failover that this instance
     * has not noticed yet.
     *
     * @returns false if this instance has not sent it @throws DatabaseError
     */
    async restore(key: LedgerKey): Promise<boolean> {
      const known = writes.get(keyTextOf(key));
      if (!known || known.step === 'released' || now() >= known.resolvableAtMs) return false;
      await known.writeAgain();
      return true;
    },

    /** Writes again what the database has lost. @returns how many it had lost @throws DatabaseError; to be tried again */
    async writeBack(): Promise<number> {
      const results = await Promise.allSettled(Array.from(writes.keys(), writeBackOne));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
      return results.filter((result) => result.status === 'fulfilled' && result.value).length;
    },
  };
}
