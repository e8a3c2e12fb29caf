/**
 * Stores a write of this instance again after the shared state has lost it. If another attempt with its X-Request-ID has
 * reached the bank since then, reports both.
 */

import type { Log } from '../telemetry/log.ts';
import type { Initiators } from './initiators.ts';
import {
  describeAttempt,
  isUnresolved,
  type SentEntry,
  type SerializedEntry,
  serialized,
  withOtherAttempt,
} from './ledger-entry.ts';
import { attemptName, type LedgerStore, type StoredEntry, type UnresolvedIndex } from './ledger-store.ts';
import type { OwnWrite, OwnWrites } from './own-writes.ts';

interface RestoreDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly initiators: Pick<Initiators, 'keep'>;
  readonly ownWrites: OwnWrites;
  readonly reportDuplicate: ReportDuplicate;
}

/** @throws GatewayError STATE_UNAVAILABLE; the write may have been stored nevertheless */
export type RestoreWrite = (write: OwnWrite) => Promise<void>;

export function createRestoreWrite({
  store,
  unresolvedIndex,
  initiators,
  ownWrites,
  reportDuplicate,
}: RestoreDependencies): RestoreWrite {
  return async ({ id, expiresAt }) => {
    const own = ownWrites.entryOf(id);
    if (!own || own.step === 'claimed') return; // nothing was sent
    const ttlMs = expiresAt === undefined ? undefined : Math.max(1, expiresAt - Date.now());
    await storeIfNewer(id, serialized(own), ttlMs);
    await initiators.keep(own, ttlMs);
    if (isUnresolved(own)) await unresolvedIndex.add(attemptName(id, own.attempt));
  };

  async function storeIfNewer(
    id: string,
    own: SerializedEntry<SentEntry>,
    ttlMs: number | undefined,
  ): Promise<void> {
    const { attempt, step } = own.entry;
    if (await store.create(id, own, ttlMs)) return;
    const stored = await store.read(id);
    if (!stored) {
      if (!(await store.replaceReleased(id, own, ttlMs))) return storeIfNewer(id, own, ttlMs);
      return;
    }
    if (!stored.entry) return; // unreadable: repeats get DUPLICATE_IN_DOUBT
    if (stored.entry.attempt !== attempt && stored.entry.step !== 'claimed') {
      await reportDuplicate(id, stored, own.entry);
      return;
    }
    const isClaimOfOther = stored.entry.attempt !== attempt; // it has sent nothing, and its mark will fail
    const isNewer = isClaimOfOther || stepOrder[step] > stepOrder[stored.entry.step];
    if (isNewer && !(await store.replace(id, stored.raw, own, ttlMs))) return storeIfNewer(id, own, ttlMs);
  }
}

const stepOrder = { claimed: 0, sending: 1, 'in-doubt': 2, answered: 3, happened: 3 } as const;

/**
 * For another attempt than the stored one, if both have reached the bank. Puts the stored entry in doubt, with what is known
 * of both attempts.
 *
 * @throws GatewayError STATE_UNAVAILABLE
 */
export type ReportDuplicate = (id: string, stored: StoredEntry, other: SentEntry) => Promise<void>;

interface DuplicateDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly countDuplicate: () => void;
  readonly log: Log;
}

export function createReportDuplicate({
  store,
  unresolvedIndex,
  countDuplicate,
  log,
}: DuplicateDependencies): ReportDuplicate {
  return async function report(id, { raw, entry }, other): Promise<void> {
    if (!entry || entry.step === 'claimed' || entry.otherAttempt !== undefined) return;
    const name = attemptName(id, entry.attempt);
    await unresolvedIndex.add(name);
    const next = serialized(withOtherAttempt(entry, describeAttempt(other)));
    if (!(await store.replace(id, raw, next))) {
      const changed = await store.read(id);
      return changed && report(id, changed, other);
    }
    await unresolvedIndex.add(name); // its holder may have recorded the outcome, and removed the name
    countDuplicate();
    const { requestId, operation, tenant, environment } = entry;
    const facts = { requestId, operation, tenant, environment, why: describeAttempt(other) };
    log('error', 'two attempts with one X-Request-ID reached the bank', facts);
  };
}
