/** Why a circuit lets a call not pass, as an error that names the seconds to wait. */

import { type GatewayError, notBefore } from '../../flow/errors.ts';

/** The bank failed, and is left alone for a while. */
export const leftAlone = (waitMs: number): GatewayError =>
  notBefore(waitMs, 'CIRCUIT_OPEN', 'The bank fails at the moment, and is left alone');

/** It has just come back: one call at a time finds out whether it does what it is asked for. */
export const onProbation = (): GatewayError =>
  notBefore(1_000, 'CIRCUIT_OPEN', 'The bank has just come back, and is tried with one call at a time');

/** Operators may let go at any time: nobody is sent away for the whole of it. */
const longestHoldMs = 60_000;

/** Operators hold the circuit open. */
export const heldOpen = (waitMs: number): GatewayError =>
  notBefore(
    Math.min(waitMs, longestHoldMs),
    'CIRCUIT_OPEN',
    'Calls of this kind are stopped by the operators of the gateway',
  );
