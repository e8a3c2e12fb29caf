/** The epochs that this instance writes under, and which of its own writes the state may have lost since. */

import type { Fence } from '../state/ports.ts';
import { closedIn, epochKey, retainedUpTo, type StoredEpoch, type StoredEpochs } from './epochs.ts';
import { partitionOf } from './ledger-store.ts';
import type { OwnWrite } from './own-writes.ts';

export interface OwnEpochs {
  /** By partition; empty until this instance has read the state for the first time. */
  readonly fences: ReadonlyMap<string, Readonly<Fence>>;
  /** The fence of the partition that an entry belongs to. */
  fenceOf(id: string): Fence | undefined;
  /** The writes that must be stored again. @param isOtherServer whether the state was restarted or failed over */
  lostIn(writes: Iterable<OwnWrite>, stored: StoredEpochs, isOtherServer: boolean): readonly OwnWrite[];
  /**
   * Writes under the stored epochs from now on, except the closed ones. To be called after all lost writes were stored again.
   *
   * @returns the new epochs by partition
   */
  adopt(stored: StoredEpochs): ReadonlyMap<string, StoredEpoch>;
  /** Remembers the latest sequence numbers: a lower one in the state is a loss. */
  noteSequences(stored: StoredEpochs): void;
}

/**
 * After a restart, changes up to this age are stored again: a later step of an entry does not raise the sequence number. Writes
 * whose outcome is not known are stored again whatever their age: they are few.
 */
const recentMs = 5 * 60_000;

export function createOwnEpochs(partitions: readonly string[]): OwnEpochs {
  const fences = new Map<string, Fence>();
  /** By partition: the id of the last closed epoch for which this instance has stored its own writes again. */
  const restoredClosed = new Map<string, string>();

  /** Whether other instances opened the partition before this one had stored its own writes again. */
  const wasOpenedWithoutThis = (partition: string, { kind, epoch, former }: StoredEpoch) =>
    kind === 'opened' && epoch !== fences.get(partition)?.epoch && former !== restoredClosed.get(partition);

  return {
    fences,
    fenceOf: (id) => fences.get(partitionOf(id, partitions)),
    lostIn(writes, stored, isOtherServer) {
      const recentSince = Date.now() - recentMs;
      const mayBeLost = ({ id, sequence, changedAt, expiresAt }: OwnWrite) => {
        const partition = partitionOf(id, partitions);
        const epoch = stored.get(partition);
        if (epoch?.kind === 'closed' && sequence > retainedUpTo(epoch, fences.get(partition))) return true;
        if (epoch && wasOpenedWithoutThis(partition, epoch)) return true;
        return isOtherServer && (expiresAt === undefined || changedAt > recentSince);
      };
      return [...writes].filter(mayBeLost);
    },
    adopt(stored) {
      for (const [partition, { id }] of closedIn(stored)) restoredClosed.set(partition, id);
      const adopted = new Map<string, StoredEpoch>();
      for (const [partition, epoch] of stored) {
        if (!epoch || epoch.kind === 'closed' || epoch.epoch === fences.get(partition)?.epoch) continue;
        fences.set(partition, { key: epochKey(partition), epoch: epoch.epoch, sequence: epoch.sequence });
        adopted.set(partition, epoch);
      }
      return adopted;
    },
    noteSequences(stored) {
      for (const [partition, fence] of fences)
        fence.sequence = Math.max(fence.sequence, stored.get(partition)?.sequence ?? 0);
    },
  };
}
