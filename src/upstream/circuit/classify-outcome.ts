/** Classifies the outcome of a call: whether it is evidence that the bank works, or that it fails. */

import { asGatewayError, type ErrorCode } from '../../request/errors.ts';

/** `neutral`: no evidence about the bank, such as a 4xx, a refusal of the gateway, or a TPP that has disconnected. */
export type CallOutcome = 'success' | 'failure' | 'neutral';

/** 501 concerns the operation, not the bank; 429 concerns the rate, which the rate limiter handles. */
export function classifyStatus(status: number): CallOutcome {
  if (status >= 500 && status !== 501) return 'failure';
  return status < 400 ? 'success' : 'neutral';
}

/** Any status below 500 shows that the bank answers. */
export const classifyProbeStatus = (status: number): CallOutcome => (status < 500 ? 'success' : 'failure');

/** Classifies a call without a response. */
export const classifyError = (thrown: unknown): CallOutcome =>
  failureCodes.has(asGatewayError(thrown).code) ? 'failure' : 'neutral';

/** Refused, reset, timed out or malformed. The gateway itself causes every other error. */
const failureCodes: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_UNREACHED',
  'UPSTREAM_MALFORMED',
  'OUTCOME_UNKNOWN',
]);
