/** Whether a call that failed is sent once more: only where it is certain that the bank cannot act twice. */

import type { Lane } from '../pis/operations.ts';
import type { GatewayError } from '../request/errors.ts';
import type { ConnectionInfo } from './upstream-call.ts';

/** A call that failed, as far as it matters. */
export interface FailedAttempt extends ConnectionInfo {
  readonly lane: Lane;
  readonly error: GatewayError;
  /** Milliseconds until the call must be over. */
  readonly remainingMs: number;
}

/**
 * Within the deadline; whoever asks does so after the first attempt only. A connection that was never made has carried
 * nothing: any call may try again. One that was used before and broke without a byte of an answer was most likely closed
 * while idle (RFC 9112 section 9.3.1); most likely is enough for what only reads, and not for a payment.
 */
export function mayRetry(attempt: FailedAttempt): boolean {
  if (attempt.remainingMs <= 0) return false;
  if (attempt.error.code === 'UPSTREAM_UNREACHED') return true;
  return attempt.lane !== 'write' && wasClosedWhileIdle(attempt);
}

const wasClosedWhileIdle = ({ error, reusedSocket, responseStarted }: FailedAttempt): boolean =>
  error.code === 'OUTCOME_UNKNOWN' &&
  error.proxyError === 'connection_terminated' &&
  reusedSocket &&
  !responseStarted;
