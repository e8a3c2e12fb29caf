/** Why a circuit lets a call not pass, as an error that names the seconds to wait. */

import { GatewayError } from '../flow/errors.ts';
import { wholeSeconds } from './queue-refusals.ts';

/** The bank failed, and is left alone for a while. */
export const leftAlone = (waitMs: number): GatewayError =>
  refusal('The bank fails at the moment, and is left alone', wholeSeconds(waitMs));

/** It has just come back: one call at a time finds out whether it does what it is asked for. */
export const onProbation = (): GatewayError =>
  refusal('The bank has just come back, and is tried with one call at a time', 1);

/** Operators may let go at any time: nobody is sent away for the whole of it. */
const longestHoldMs = 60_000;

/** Operators hold the circuit open. */
export const heldOpen = (waitMs: number): GatewayError =>
  refusal(
    'Calls of this kind are stopped by the operators of the gateway',
    wholeSeconds(Math.min(waitMs, longestHoldMs)),
  );

function refusal(what: string, seconds: number): GatewayError {
  return new GatewayError('CIRCUIT_OPEN', `${what}; nothing was sent. Try again in ${seconds} s.`, {
    headers: [['Retry-After', String(seconds)]],
  });
}
