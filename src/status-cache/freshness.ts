/** How long a status may be served without asking the bank: by what it is, and by how long it has rested. */

import { finalityOf } from '../pis/transaction-status.ts';

/** All in milliseconds. */
export interface FreshnessSettings {
  readonly finalTtl: number;
  readonly settledTtl: number;
  readonly pendingTtl: number;
  readonly pendingTtlMax: number;
}

/** A status that has rested for ten seconds will hardly change within the next one. */
const restingShare = 0.1;

/**
 * @param status         transaction status, or `undefined` if the answer names none: then it may change at any time
 * @param unchangedForMs how long the payment is known to have had it
 * @returns milliseconds
 */
export function ttlOf(
  { finalTtl, settledTtl, pendingTtl, pendingTtlMax }: FreshnessSettings,
  paymentService: string,
  status: string | undefined,
  unchangedForMs: number,
): number {
  if (status === undefined) return pendingTtl;
  switch (finalityOf(paymentService, status)) {
    case 'final':
      return finalTtl;
    case 'settled':
      return settledTtl;
    case 'pending':
      return Math.min(pendingTtlMax, Math.max(pendingTtl, unchangedForMs * restingShare));
  }
}
