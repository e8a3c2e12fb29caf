/** Turns of a shared bucket, without waiting for a state that is slow to answer. */

import { idleTime } from './idle-time.ts';
import { reservationsOn } from './memory.ts';
import type { BucketRate, Reservations } from './ports.ts';

/** A state that takes longer to answer is slow, in milliseconds. */
const promptMs = 15;
/** Longer than any turn is away: what was taken already is booked in any case. Milliseconds. */
const howeverLateMs = 3_600_000;

interface Clocks {
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
  /** Begins to count how long an answer takes, in milliseconds. */
  readonly stopwatch?: () => () => number;
}

/**
 * While the state is slow, a turn is taken at once if this instance has taken none for as long as one lasts at its part
 * of the rate, and booked in the shared bucket afterwards; all others wait for the bucket. So a call now and then is not
 * late, none is left uncounted, and each instance is ahead of the bucket by one turn at most.
 *
 * @param part of the rate at which turns are taken before the shared bucket has answered: 0 to 1
 * @throws GatewayError STATE_UNAVAILABLE as the shared bucket does
 */
export function promptReservations(
  shared: Reservations,
  part: () => number,
  { now = () => performance.now(), stopwatch = idleTime }: Clocks = {},
): Reservations {
  const own = reservationsOn(now);
  let slow = false;

  async function booked(bucket: string, rate: BucketRate, maxWaitMs: number): Promise<number | undefined> {
    const tookMs = stopwatch();
    try {
      const waitMs = await shared.reserve(bucket, rate, maxWaitMs);
      slow = tookMs() > promptMs;
      return waitMs;
    } catch (thrown) {
      slow = false; // out of reach: whoever asks next must hear of it
      throw thrown;
    }
  }

  return {
    async reserve(bucket, rate, maxWaitMs) {
      const mine = await own.reserve(bucket, { perSecond: rate.perSecond * part(), burst: 1 }, 0);
      if (!slow || mine !== 0) return booked(bucket, rate, maxWaitMs);
      booked(bucket, rate, howeverLateMs).catch(() => {});
      return 0;
    },
    take: shared.take,
  };
}
