/** What becomes of a write at each step of its entry when its instance is killed, or stands still for longer than its lease. */

import type { WriteOutcome, WriteStage } from '../kit/breakpoint-writes.ts';

/** What TPP systems are told of one write, and what the bank has seen of it. */
export interface CrashOutcome {
  /** The repeat that is sent at once to the instance that lives. */
  readonly atOnce: WriteOutcome;
  /** The repeat when the lease of the other instance has ended. */
  readonly later: WriteOutcome;
  /** Whether operators are told of it then, and in the end. */
  readonly listedThen: boolean;
  readonly listed: boolean;
  /** The first request itself, when its instance goes on. */
  readonly first: WriteOutcome;
  /** The repeat after that. */
  readonly last: WriteOutcome;
  readonly sent: number;
}
/** One for each step. */
export type CrashOutcomes = Readonly<Record<WriteStage, CrashOutcome>>;

export const inFlight = '409 DUPLICATE_IN_FLIGHT';
const inDoubt = '409 DUPLICATE_IN_DOUBT';
const notSent = '503 STATE_UNAVAILABLE';

const known = { later: 'replayed', last: 'replayed', sent: 1, listedThen: false, listed: false };
const doubted = { atOnce: inFlight, later: inDoubt, last: inDoubt, listedThen: true };

/** Nothing is known of what the dead instance had begun to send, even where not a byte of it has left. */
export const killed: CrashOutcomes = {
  'before the claim': { ...known, atOnce: 'proper', first: 'lost' },
  claimed: { ...known, atOnce: inFlight, later: 'proper', first: 'lost' },
  sending: { ...doubted, first: 'lost', sent: 0, listed: true },
  'at the bank': { ...doubted, first: 'lost', sent: 1, listed: true },
  answered: { ...doubted, first: 'lost', sent: 1, listed: true },
  stored: { ...known, atOnce: 'replayed', first: 'lost' },
};

const cleared = { ...doubted, first: 'proper', last: 'replayed', sent: 1, listed: false };

/** Whoever stood still finds out that others have decided meanwhile; what it learns afterwards ends the doubt. */
export const stopped: CrashOutcomes = {
  'before the claim': { ...known, atOnce: 'proper', first: 'replayed' },
  claimed: { ...known, atOnce: inFlight, later: 'proper', first: inFlight },
  sending: { ...cleared, first: notSent, last: 'proper' },
  'at the bank': cleared,
  answered: cleared,
  stored: { ...known, atOnce: 'replayed', first: 'proper' },
};

/** Of those that nobody repeats meanwhile, operators are told all the same. */
export const withoutRepeats = (
  stories: CrashOutcomes,
  claimedByFirst: Partial<CrashOutcome>,
): CrashOutcomes => {
  const quiet = (moment: WriteStage): CrashOutcome => ({ ...stories[moment], atOnce: '-', later: '-' });
  return {
    'before the claim': { ...quiet('before the claim'), ...claimedByFirst },
    claimed: { ...quiet('claimed'), ...claimedByFirst },
    sending: quiet('sending'),
    'at the bank': quiet('at the bank'),
    answered: quiet('answered'),
    stored: quiet('stored'),
  };
};
