/** Decides whether a failed call is retried: only where the bank certainly cannot act twice. */

import type { Lane } from '../pis/operations.ts';
import type { GatewayError } from '../request/errors.ts';
import type { ConnectionInfo } from './upstream-call.ts';

export interface FailedAttempt extends ConnectionInfo {
  readonly lane: Lane;
  readonly error: GatewayError;
  /** Milliseconds until the deadline of the call. */
  readonly remainingMs: number;
}

/** A timer can fire a millisecond early: a call that fails this close to its deadline has reached it. */
const minRemainingMs = 1;

/**
 * To be asked after the first attempt only. Without a connection nothing was sent, so any call may be retried. If a reused
 * connection broke before the first byte of a response, the bank most likely closed it while it was idle (RFC 9112 section
 * 9.3.1). Most likely is enough for a read, but not for a payment.
 */
export function mayRetry(attempt: FailedAttempt): boolean {
  if (attempt.remainingMs < minRemainingMs) return false;
  if (attempt.error.code === 'UPSTREAM_UNREACHED') return true;
  return attempt.lane !== 'write' && wasClosedWhileIdle(attempt);
}

const wasClosedWhileIdle = ({ error, reusedSocket, responseStarted }: FailedAttempt): boolean =>
  error.code === 'OUTCOME_UNKNOWN' &&
  error.proxyError === 'connection_terminated' &&
  reusedSocket &&
  !responseStarted;
