/**
 * Follows what operators decided about the writes of this instance that are in doubt. Otherwise this instance would store
 * them again as in doubt after a loss of the shared state, although an operator resolved them, or released them and another
 * attempt was paid.
 */

import { isInDoubt, type LedgerEntry } from './ledger-entry.ts';
import type { LedgerStore, StoredEntry } from './ledger-store.ts';
import type { LossGuard } from './loss-guard.ts';
import type { OwnWrites } from './own-writes.ts';

interface ResolutionsDependencies {
  readonly store: Pick<LedgerStore, 'read'>;
  readonly ownWrites: OwnWrites;
  readonly lossGuard: Pick<LossGuard, 'fenceOf' | 'isCurrent' | 'verify'>;
  /** `idempotency.window`, in milliseconds. */
  readonly windowMs: () => number;
}

/** @returns a function to be called every few seconds. It throws GatewayError STATE_UNAVAILABLE */
export function createFollowResolutions({
  store,
  ownWrites,
  lossGuard,
  windowMs,
}: ResolutionsDependencies): () => Promise<void> {
  return async () => {
    const ids = ownWrites.unresolvedIds();
    if (ids.length === 0) return;
    const found = await Promise.all(
      ids.map(async (id) => ({ id, fence: lossGuard.fenceOf(id), stored: await store.read(id) })),
    );
    // An entry may be missing because the state has lost it. A check that begins now finds such a loss.
    await lossGuard.verify(); // it may have begun before the reads
    await lossGuard.verify();
    for (const { id, fence, stored } of found) if (lossGuard.isCurrent(id, fence)) follow(id, stored);
  };

  function follow(id: string, stored: StoredEntry | undefined): void {
    const own = ownWrites.entryOf(id);
    if (!isInDoubt(own)) return;
    if (stored && !stored.entry) return; // it cannot be read
    if (stored?.entry?.attempt !== own.attempt) ownWrites.delete(id);
    else if (isResolved(stored.entry))
      ownWrites.set(id, { raw: stored.raw, entry: stored.entry }, { ttlMs: windowMs() });
  }
}

const isResolved = (entry: LedgerEntry) =>
  entry.step === 'happened' || (entry.step === 'answered' && !isInDoubt(entry));
