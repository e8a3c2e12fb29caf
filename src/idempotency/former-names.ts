/**
 * The entries of the ledger in a cluster, under two names (ADR 71). Releases before the epochs know only the former name,
 * which has no hash tag. So that both releases can run side by side, an attempt must hold both names to be claimed and to be
 * sent. Of two names in different slots, one can be lost or lag behind:
 *
 * - An attempt of this release is stored under both. The present name is fenced, and decides.
 * - An attempt of a former release has only the former name, and keeps it: that release compares the text there.
 */

import type { Fence, KeyValues } from '../state/ports.ts';
import { parseEntry, type SerializedEntry, serialized } from './ledger-entry.ts';
import { createLedgerStore, type LedgerStore } from './ledger-store.ts';

/** The store of the ledger. With one partition, the names have always been the same. */
export function createEntryStore(keyValues: KeyValues, partitions: readonly string[]): LedgerStore {
  const present = createLedgerStore(keyValues, partitions);
  return partitions.length > 1 ? withFormerNames(present, createLedgerStore(keyValues)) : present;
}

/** @param present the entries under their present names @param former the same ids under their former names */
function withFormerNames(present: LedgerStore, former: LedgerStore): LedgerStore {
  /** Claims the former name, then the present one. Releases the former one if the present one cannot be claimed. */
  async function claimBoth(
    id: string,
    { raw }: SerializedEntry,
    claimFormer: () => Promise<boolean>,
    claimPresent: () => Promise<boolean>,
  ): Promise<boolean> {
    if (!(await claimFormer())) return false;
    let isClaimed = false;
    try {
      isClaimed = await claimPresent();
    } finally {
      if (!isClaimed) await former.release(id, raw).catch(() => {}); // it expires by itself
    }
    return isClaimed;
  }

  const createPresent = async (id: string, entry: SerializedEntry, ttlMs?: number, fence?: Fence) =>
    (await present.create(id, entry, ttlMs, fence)) ||
    (await present.replaceReleased(id, entry, ttlMs, fence, fence && 'unsent'));

  /** Stores an attempt again that may have been sent, unless the former name belongs to another one. */
  async function restore(id: string, own: SerializedEntry, ttlMs?: number): Promise<boolean> {
    if ((await former.create(id, own, ttlMs)) || (await former.replaceReleased(id, own, ttlMs)))
      return createPresent(id, own, ttlMs);
    const stored = await former.read(id);
    const { attempt } = own.entry;
    if (!stored?.entry || stored.entry.attempt !== attempt) return false;
    await createPresent(id, serialized(stored.entry), ttlMs);
    const decisive = (await present.read(id))?.entry;
    const isLater = decisive?.attempt === attempt && decisive.step !== 'claimed';
    if (isLater && stored.entry.step !== 'happened')
      await former.replace(id, stored.raw, serialized(decisive), ttlMs);
    return false;
  }

  /** Changes the former name as the present one, unless it belongs to another attempt, or an operator resolved it there. */
  async function follow(id: string, raw: string, change: (text: string) => Promise<unknown>): Promise<void> {
    if (await change(raw)) return;
    const attempt = parseEntry(raw)?.attempt;
    const stored = await former.read(id);
    if (attempt === undefined || stored?.entry?.attempt !== attempt) return;
    if (stored.entry.step !== 'happened') await change(stored.raw);
  }

  return {
    read: async (id) => (await present.read(id)) ?? former.read(id),

    async create(id, entry, ttlMs, fence) {
      if (!fence) return restore(id, entry, ttlMs);
      const claimFormer = () => former.create(id, entry, ttlMs);
      return claimBoth(id, entry, claimFormer, () => createPresent(id, entry, ttlMs, fence));
    },

    async replaceReleased(id, entry, ttlMs, fence, marker) {
      if (!fence) return restore(id, entry, ttlMs);
      // The marker of an unsent attempt expires soon. That of a sent one exists under the present name only: former releases cannot read it.
      return claimBoth(
        id,
        entry,
        async () => (await former.replaceReleased(id, entry, ttlMs)) || former.create(id, entry, ttlMs),
        async () =>
          (await present.replaceReleased(id, entry, ttlMs, fence, marker)) ||
          (marker !== 'sent' && present.create(id, entry, ttlMs, fence)),
      );
    },

    async replace(id, raw, next, ttlMs, { fence, after } = {}) {
      if (after && !(await after)) return false;
      if (next.entry.step === 'claimed') {
        const claimFormer = async () =>
          (await former.replace(id, raw, next, ttlMs)) || former.create(id, next, ttlMs);
        const claimPresent = async () =>
          (await present.replace(id, raw, next, ttlMs, { fence })) || createPresent(id, next, ttlMs, fence);
        if (await claimBoth(id, next, claimFormer, claimPresent)) return true;
        // A former release may have taken over the former name: the abandoned claim must not hide its attempt.
        await present.release(id, raw);
        return false;
      }
      if (!(await present.replace(id, raw, next, ttlMs, { fence }))) {
        const stored = await present.read(id);
        if (!stored) return former.replace(id, raw, next, ttlMs);
        if (stored.raw !== next.raw) return false; // otherwise an earlier try did not change the former name
      }
      await follow(id, raw, (text) => former.replace(id, text, next, ttlMs));
      return true;
    },

    async replaceConfirmed(id, raw, next, fence) {
      const [isFormer, isPresent] = await Promise.all([
        former.replace(id, raw, next),
        present.replaceConfirmed(id, raw, next, fence),
      ]);
      return isFormer && isPresent;
    },

    async release(id, raw, sentForMs) {
      if (!(await present.release(id, raw, sentForMs))) {
        return (await present.read(id)) ? false : former.release(id, raw);
      }
      await follow(id, raw, (text) => former.release(id, text));
      return true;
    },
  };
}
