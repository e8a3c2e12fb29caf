/** Puts the ledger together: what lasts as long as the gateway, and what one configuration makes of it. */

import type { Config } from '../config/schema.ts';
import { type Changes, createChanges } from '../state/changes.ts';
import { createOwed } from '../state/owed.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { ClaimParts } from './claim.ts';
import { createDoubts, type Doubts } from './doubts.ts';
import { createEntries } from './entries.ts';
import type { Guard } from './guard-duplicates.ts';
import { createHolders, type Holders } from './holders.ts';
import { createLedger } from './ledger.ts';
import { createOpenEntries } from './open-entries.ts';

/** What outlives a reload of the configuration. */
export interface LastingLedger extends ClaimParts {
  readonly holders: Holders;
  readonly changes: Changes;
  readonly doubts: Doubts;
  /** To be called every second: sees after what is left to do, by this instance and by dead ones. */
  tidy(): Promise<void>;
  /** Says that this instance is gone; what it was still sending is in doubt. Never fails. */
  leave(): Promise<void>;
}

/** It is looked for what dead instances have left every so many times. */
const turnsPerLook = 5;

/** @param count told how many doubts there are */
export function createLastingLedger(
  { keyValues, sets, announcements }: Pick<State, 'keyValues' | 'sets' | 'announcements'>,
  log: Log,
  count: (doubts: number) => void,
): LastingLedger {
  const changes = createChanges(announcements, 'ledger');
  const changed = changes.tell;
  const [entries, open] = [createEntries(keyValues), createOpenEntries(sets)];
  const holders = createHolders(keyValues, sets);
  const doubts = createDoubts({ entries, open, holders, changed, log });
  const owed = createOwed<() => Promise<void>>((act) => act());
  let turns = 0;
  return {
    entries,
    open,
    holders,
    doubts,
    changes,
    changed,
    owed,
    log,
    async tidy() {
      await owed.settle().catch(() => {}); // it stays owed
      if (turns++ % turnsPerLook === 0) count(await doubts.lookAround());
    },
    leave: () => holders.leave().catch(() => {}), // it is found out when the lease ends
  };
}

export function createGuard({ idempotency, listen }: Config, lasting: LastingLedger): Guard {
  const { changes, log, doubts } = lasting;
  const { wait, lateAnswer, ifStateFails } = idempotency;
  return {
    ledger: createLedger({ ...lasting, doubtOf: doubts.doubtOf }, idempotency),
    changes,
    log,
    waitMs: wait,
    lateAnswerMs: lateAnswer,
    ifStateFails,
    publicUrl: listen.publicUrl,
  };
}
