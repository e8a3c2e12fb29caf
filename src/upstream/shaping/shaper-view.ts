/** What operators see of a shaper. */

import type { Lane } from '../../pis/operations.ts';

/** What there is to see of a shaper at this moment. */
export interface ShaperView {
  readonly waiting: Readonly<Record<Lane, number>>;
  /** Calls under way. */
  readonly running: number;
  /** Turns a second, of all instances together. */
  readonly perSecond: number;
  /** How long the bank is left alone on its own wish; 0 = not at all. Milliseconds. */
  readonly pausedMs: number;
}
