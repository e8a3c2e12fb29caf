/** What is told of a shaper: to operators, and to whoever counts. */

import type { ErrorCode } from '../../flow/errors.ts';
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

/** What happened, for whoever counts. */
export type ShaperNews =
  | { readonly kind: 'sent'; readonly lane: Lane; readonly waitedMs: number }
  | { readonly kind: 'refused'; readonly lane: Lane; readonly code: ErrorCode }
  | { readonly kind: 'left'; readonly lane: Lane };
