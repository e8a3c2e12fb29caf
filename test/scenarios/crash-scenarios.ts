/** What happens to a write at each stage when its instance is killed, or suspended for longer than its lease. */

import type { WriteOutcome, WriteStage } from '../kit/breakpoint-writes.ts';

/** The responses to one write and its repeats, and what the bank and the operators see. */
export interface CrashOutcome {
  /** The repeat to the live instance right after the crash; `-` if the write is not repeated. */
  readonly atOnce: WriteOutcome;
  /** The repeat to the live instance after the lease of the crashed one has expired. */
  readonly afterLease: WriteOutcome;
  /** Whether the write is listed as in doubt then. */
  readonly listedAfterLease: boolean;
  /** The first request itself, after its instance has resumed. */
  readonly first: WriteOutcome;
  /** The repeat after that. */
  readonly last: WriteOutcome;
  /** Whether the write is listed as in doubt at the end. */
  readonly listed: boolean;
  readonly timesReceived: number;
}
export type CrashOutcomes = Readonly<Record<WriteStage, CrashOutcome>>;

export const inFlight = '409 DUPLICATE_IN_FLIGHT';
const inDoubt = '409 DUPLICATE_IN_DOUBT';
const notSent = '503 STATE_UNAVAILABLE';

const known = {
  ...{ afterLease: 'replayed', last: 'replayed' },
  ...{ timesReceived: 1, listedAfterLease: false, listed: false },
};
const doubted = { atOnce: inFlight, afterLease: inDoubt, last: inDoubt, listedAfterLease: true };

/** A write that the dead instance had marked as sending is in doubt, even if no byte was sent. */
export const killed: CrashOutcomes = {
  'before the claim': { ...known, atOnce: 'succeeded', first: 'lost' },
  claimed: { ...known, atOnce: inFlight, afterLease: 'succeeded', first: 'lost' },
  sending: { ...doubted, first: 'lost', timesReceived: 0, listed: true },
  'at the bank': { ...doubted, first: 'lost', timesReceived: 1, listed: true },
  answered: { ...doubted, first: 'lost', timesReceived: 1, listed: true },
  stored: { ...known, atOnce: 'replayed', first: 'lost' },
};

const resolved = { ...doubted, first: 'succeeded', last: 'replayed', timesReceived: 1, listed: false };

/** The resumed instance respects what others decided in between; the response that it receives ends the doubt. */
export const suspended: CrashOutcomes = {
  'before the claim': { ...known, atOnce: 'succeeded', first: 'replayed' },
  claimed: { ...known, atOnce: inFlight, afterLease: 'succeeded', first: inFlight },
  sending: { ...resolved, first: notSent, last: 'succeeded' },
  'at the bank': resolved,
  answered: resolved,
  stored: { ...known, atOnce: 'replayed', first: 'succeeded' },
};

/** A claim of a suspended instance that is not repeated: nothing is sent, and its TPP must repeat it. */
export const claimDeleted: CrashOutcome = {
  ...known,
  atOnce: '-',
  afterLease: '-',
  first: inFlight,
  last: 'succeeded',
};

/** On a slow machine, the lease of the crashed instance has expired before the first repeat. */
export const afterExpiry = (expected: CrashOutcome): CrashOutcome => ({
  ...expected,
  atOnce: expected.afterLease,
  afterLease: expected.afterLease === 'succeeded' ? 'replayed' : expected.afterLease,
});

/**
 * The same for writes that are not repeated before the end: they are listed as well.
 *
 * @param unclaimed what differs for writes that no other instance has executed
 */
export const withoutRepeats = (outcomes: CrashOutcomes, unclaimed: Partial<CrashOutcome>): CrashOutcomes => {
  const outcome = (stage: WriteStage): CrashOutcome => ({ ...outcomes[stage], atOnce: '-', afterLease: '-' });
  return {
    'before the claim': { ...outcome('before the claim'), ...unclaimed },
    claimed: { ...outcome('claimed'), ...unclaimed },
    sending: outcome('sending'),
    'at the bank': outcome('at the bank'),
    answered: outcome('answered'),
    stored: outcome('stored'),
  };
};
