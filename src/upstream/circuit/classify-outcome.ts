/** Classifies the outcome of a call: whether it is evidence that the bank works, or that it fails. */

import { asGatewayError, type ErrorCode } from '../../request/errors.ts';
import type { Meaning } from '../../request/messages.ts';

/**
 * `neutral`: no evidence about the bank, such as a 4xx, a refusal of the gateway, or a TPP that has disconnected.
 * `unreachable`: a failure that no request can cause, because no connection was made.
 */
export type CallOutcome = 'success' | 'failure' | 'unreachable' | 'neutral';

/** A probe is not a tenant's request, so every failure concerns the bank. */
export type ProbeOutcome = Exclude<CallOutcome, 'unreachable'>;

/**
 * 501 concerns the operation, not the bank; 429 concerns the rate, which the rate limiter handles. A web page in place of a payment is
 * a failure, but a 409 shows that the bank works.
 *
 * @param meaning `undefined` for reads
 */
export function classifyAnswer(status: number, meaning: Meaning | undefined): CallOutcome {
  if (meaning?.outcome === 'in-doubt') return status === 409 ? 'neutral' : 'failure';
  if (status >= 500 && status !== 501) return 'failure';
  return status < 400 ? 'success' : 'neutral';
}

/** Any status below 500 shows that the bank answers. */
export const classifyProbeStatus = (status: number): ProbeOutcome => (status < 500 ? 'success' : 'failure');

export function classifyProbeError(thrown: unknown): ProbeOutcome {
  const outcome = classifyError(thrown);
  return outcome === 'unreachable' ? 'failure' : outcome;
}

/** Classifies a call without a response. */
export function classifyError(thrown: unknown): CallOutcome {
  const { code } = asGatewayError(thrown);
  if (code === 'UPSTREAM_UNREACHED') return 'unreachable';
  return failureCodes.has(code) ? 'failure' : 'neutral';
}

/** Reset, timed out or malformed. The gateway itself causes every other error. */
const failureCodes: ReadonlySet<ErrorCode> = new Set(['UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN']);
