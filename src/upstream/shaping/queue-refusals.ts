/** Why a call was not sent although nothing is wrong with the bank: told as errors of the table. */

import { GatewayError, notBefore } from '../../flow/errors.ts';

/** The line is full, and nothing in it can make room for this call. */
export function turnedAway(): GatewayError {
  return new GatewayError(
    'QUEUE_FULL',
    'Too many calls are waiting for the bank; nothing was sent. Try again.',
  );
}

/** It waited for as long as a call of its lane may, or its deadline came. */
export function waitedTooLong(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The turn of this request did not come in time; nothing was sent. Try again.',
  );
}

/** The bank asked to be left alone, for longer than the call can wait. */
export const bankRests = (pausedMs: number): GatewayError =>
  notBefore(pausedMs, 'QUEUE_TIMEOUT', 'The bank asks for a pause');

/** The TPP hung up while its call waited: nobody reads this, but the log. */
export function hungUpWaiting(): GatewayError {
  return new GatewayError('QUEUE_TIMEOUT', 'The caller left before its turn came; nothing was sent.');
}
