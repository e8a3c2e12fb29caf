/** Turns on their way to this instance: one is booked ahead at most, and each costs one question where they abound. */

/** How many turns may be asked for at the same time while they all come at once. */
const maxAsking = 32;

export interface Turns {
  /** Sees that so many are on their way, as far as that may be. */
  want(count: number): void;
  /** How many are. */
  expected(): number;
  /** Whether it is still open if the next one comes at once. */
  asking(): boolean;
}

interface Parts {
  /** Books the next turn. @returns milliseconds until it comes, `undefined` if that is too long; never rejects */
  readonly book: (maxWaitMs: number) => Promise<number | undefined>;
  /** The longest that anybody waits, in milliseconds. */
  readonly longestWaitMs: number;
  /** A turn has come, and is lost unless it is taken now. */
  readonly came: () => void;
  /** The next turn comes later than anybody waits. */
  readonly outOfReach: () => void;
  /** Called whenever more could be wanted. */
  readonly moved: () => void;
}

/**
 * No turn is on its way yet.
 *
 * Beside the one that is booked, others are only asked for as long as they come at once, and only taken if they do. How
 * many at a time doubles with each that came, and falls back to one as soon as one has to be waited for: a shared bucket
 * that is empty is asked once a turn, not once a call.
 */
export function createTurns({ book, longestWaitMs, came, outOfReach, moved }: Parts): Turns {
  let expected = 0;
  let asked = 0;
  let width = 1;

  async function ask(): Promise<void> {
    const ahead = expected === 0;
    expected += 1;
    asked += 1;
    const waitMs = await book(ahead ? longestWaitMs : 0);
    asked -= 1;
    width = waitMs === 0 ? Math.min(width * 2, maxAsking) : 1;
    if (waitMs === 0) return arrive();
    // Timers count whole milliseconds: rounded down, the turn would come before its time.
    if (waitMs !== undefined) setTimeout(arrive, Math.ceil(waitMs));
    else expected -= 1;
    if (waitMs === undefined && ahead) outOfReach();
    moved();
  }

  function arrive(): void {
    expected -= 1;
    came();
    moved();
  }

  return {
    want(count) {
      while (expected < Math.min(count, width)) void ask();
    },
    expected: () => expected,
    asking: () => asked > 0,
  };
}
