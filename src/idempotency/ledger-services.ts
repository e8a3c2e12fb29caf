/** Puts the ledger together: what lasts as long as the gateway, and what one configuration makes of it. */

import type { Config } from '../config/schema.ts';
import { type ChangeWaiter, createChangeWaiter } from '../state/change-waiter.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { ClaimDependencies } from './claim.ts';
import type { IdempotencyDependencies } from './enforce-idempotency.ts';
import { createLedger } from './ledger.ts';
import { createLedgerStore, createUnresolvedIndex } from './ledger-store.ts';
import {
  createInDoubtWrites,
  createInstanceLeases,
  type InDoubtWrites,
  type InstanceLeases,
} from './recovery.ts';

/** What outlives a reload of the configuration. */
export interface LedgerServices extends ClaimDependencies {
  readonly instanceLeases: InstanceLeases;
  readonly entryChanges: ChangeWaiter;
  readonly inDoubt: InDoubtWrites;
  /** To be called every second: sees after what is left to do, by this instance and by dead ones. */
  maintain(): Promise<void>;
  /** Says that this instance is gone; what it was still sending is in doubt. Never fails. */
  deregister(): Promise<void>;
}

/** It is looked for what dead instances have left every so many times. */
const beatsPerScan = 5;

/** @param count told how many doubts there are */
export function createLedgerServices(
  { keyValues, sets, pubsub }: Pick<State, 'keyValues' | 'sets' | 'pubsub'>,
  log: Log,
  count: (doubts: number) => void,
): LedgerServices {
  const changes = createChangeWaiter(pubsub, 'ledger');
  const changed = changes.notify;
  const [entries, open] = [createLedgerStore(keyValues), createUnresolvedIndex(sets)];
  const holders = createInstanceLeases(keyValues, sets);
  const doubts = createInDoubtWrites({
    store: entries,
    unresolvedIndex: open,
    instanceLeases: holders,
    notifyChanged: changed,
    log,
  });
  const owed = createPendingWrites<() => Promise<void>>((act) => act());
  let turns = 0;
  return {
    store: entries,
    unresolvedIndex: open,
    instanceLeases: holders,
    inDoubt: doubts,
    entryChanges: changes,
    notifyChanged: changed,
    pendingWrites: owed,
    log,
    async maintain() {
      await owed.flush().catch(() => {}); // it stays owed
      if (turns++ % beatsPerScan === 0) count(await doubts.scan());
    },
    deregister: () => holders.deregister().catch(() => {}), // it is found out when the lease ends
  };
}

export function createIdempotencyDependencies(
  { idempotency, listen }: Config,
  lasting: LedgerServices,
): IdempotencyDependencies {
  const { entryChanges, log, inDoubt } = lasting;
  const { wait, lateAnswer, ifStateFails } = idempotency;
  return {
    ledger: createLedger({ ...lasting, markOrphaned: inDoubt.markOrphaned }, idempotency),
    entryChanges,
    log,
    waitMs: wait,
    lateAnswerMs: lateAnswer,
    ifStateFails,
    publicUrl: listen.publicUrl,
  };
}
