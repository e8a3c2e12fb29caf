/** Turns on their way to this instance: one is booked ahead at most, and each costs one question where they abound. */

/** How many turns may be asked for at the same time while they all come at once. */
const maxConcurrentRequests = 32;

export interface PermitPrefetch {
  /** Sees that so many are on their way, as far as that may be. */
  request(count: number): void;
  /** How many are. */
  pendingCount(): number;
  /** Whether it is still open if the next one comes at once. */
  isRequesting(): boolean;
}

interface PermitPrefetchDependencies {
  /** Books the next turn. @returns milliseconds until it comes, `undefined` if that is too long; never rejects */
  readonly reserve: (maxWaitMs: number) => Promise<number | undefined>;
  /** The longest that anybody waits, in milliseconds. */
  readonly maxWaitMs: number;
  /** A turn has come, and is lost unless it is taken now. */
  readonly onPermit: () => void;
  /** The next turn comes later than anybody waits. */
  readonly onOutOfReach: () => void;
  /** Called whenever more could be wanted. */
  readonly onProgress: () => void;
}

/**
 * No turn is on its way yet.
 *
 * Beside the one that is booked, others are only asked for as long as they come at once, and only taken if they do. How
 * many at a time doubles with each that came, and falls back to one as soon as one has to be waited for: a shared bucket
 * that is empty is asked once a turn, not once a call.
 */
export function createPermitPrefetch({
  reserve,
  maxWaitMs,
  onPermit,
  onOutOfReach,
  onProgress,
}: PermitPrefetchDependencies): PermitPrefetch {
  let pending = 0;
  let requesting = 0;
  let concurrency = 1;

  async function requestPermit(): Promise<void> {
    const ahead = pending === 0;
    pending += 1;
    requesting += 1;
    const waitMs = await reserve(ahead ? maxWaitMs : 0);
    requesting -= 1;
    concurrency = waitMs === 0 ? Math.min(concurrency * 2, maxConcurrentRequests) : 1;
    if (waitMs === 0) return deliver();
    // Timers count whole milliseconds: rounded down, the turn would come before its time.
    if (waitMs !== undefined) setTimeout(deliver, Math.ceil(waitMs));
    else pending -= 1;
    if (waitMs === undefined && ahead) onOutOfReach();
    onProgress();
  }

  function deliver(): void {
    pending -= 1;
    onPermit();
    onProgress();
  }

  return {
    request(count) {
      while (pending < Math.min(count, concurrency)) void requestPermit();
    },
    pendingCount: () => pending,
    isRequesting: () => requesting > 0,
  };
}
