/** Which writes of other instances this one could not know of. If a loss includes such writes, an operator must decide. */

import type { Fence } from '../state/ports.ts';
import { closedIn, retainedUpTo, type StoredEpochs } from './epochs.ts';

export interface LossCoverage {
  /** This instance uses the partition from this sequence number on. Earlier writes can be of instances that it never saw. */
  start(partition: string, sequence: number): void;
  /** Before its first write, this instance has read in the registration of a covering one which instances there are. */
  onIntroduction(): void;
  /** This instance was suspended or had no state: others may have started, sent writes and ended unseen. */
  onAbsence(): void;
  /** An instance has ended: no instance remembers its writes, up to these sequence numbers. */
  onInstanceEnd(stored: StoredEpochs): void;
  /** A release without epochs has sent writes up to now: no sequence number counts them, and nobody remembers them. */
  onFormerRelease(stored: StoredEpochs): void;
  /**
   * Whether every write that the closed partitions may have lost is of a known instance that still runs. While none is
   * closed: every write of all partitions.
   */
  covers(stored: StoredEpochs, fences: ReadonlyMap<string, Fence>): boolean;
}

/** @param windowMs how long a write matters, in milliseconds */
export function createLossCoverage(windowMs: () => number): LossCoverage {
  /** By partition: writes up to this sequence number may be of instances that have ended. */
  const unknownUpTo = new Map<string, number>();
  /** When a number last rose; `windowMs` later, the unknown writes no longer matter. Milliseconds since 1970. */
  let unknownSince = Number.NEGATIVE_INFINITY;

  /** Whether the writes after a sequence number are of instances that are known and still run. */
  function knowsAfter(partition: string, sequence: number): boolean {
    const unknown = unknownUpTo.get(partition);
    if (unknown === undefined) return false;
    return unknown <= sequence || Date.now() - unknownSince > windowMs();
  }

  return {
    start(partition, sequence) {
      const before = unknownUpTo.get(partition) ?? sequence;
      unknownUpTo.set(partition, Math.min(before, sequence));
      unknownSince = Math.max(unknownSince, Date.now());
    },
    onIntroduction() {
      for (const partition of unknownUpTo.keys()) unknownUpTo.set(partition, 0);
    },
    onAbsence: () => unknownUpTo.clear(),
    onInstanceEnd(stored) {
      unknownSince = Date.now();
      for (const [partition, epoch] of stored) if (epoch) unknownUpTo.set(partition, epoch.sequence);
    },
    onFormerRelease(stored) {
      unknownSince = Date.now();
      for (const [partition, epoch] of stored) if (epoch) unknownUpTo.set(partition, epoch.sequence + 1);
    },
    covers(stored, fences) {
      const closed = closedIn(stored);
      if (closed.length === 0) return [...stored.keys()].every((partition) => knowsAfter(partition, 0));
      return closed.every(([partition, epoch]) =>
        knowsAfter(partition, Math.max(0, retainedUpTo(epoch, fences.get(partition)))),
      );
    },
  };
}
