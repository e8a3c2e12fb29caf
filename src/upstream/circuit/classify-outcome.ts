/** What an outcome says about the bank: the one table of what moves a circuit. */

import { asGatewayError, type ErrorCode } from '../../request/errors.ts';

/** `nothing` where the bank is as well or unwell as before: its refusals, ours, a TPP that left. */
export type CallOutcome = 'well' | 'failing' | 'nothing';

/** Of an answer: its status. 501 is an answer about the operation; 429 is about the rate, which the shaper looks after. */
export function classifyStatus(status: number): CallOutcome {
  if (status >= 500 && status !== 501) return 'failing';
  return status < 400 ? 'well' : 'nothing';
}

/** Of an answer to the gateway's own question: whatever the bank says below 500, it is there. */
export const classifyProbeStatus = (status: number): CallOutcome => (status < 500 ? 'well' : 'failing');

/** Of a call that brought no answer. */
export function classifyError(thrown: unknown): CallOutcome {
  return failureCodes.has(asGatewayError(thrown).code) ? 'failing' : 'nothing';
}

/** Refused, reset, timed out, malformed. All else is ours, and was never the bank's doing. */
const failureCodes: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_UNREACHED',
  'UPSTREAM_MALFORMED',
  'OUTCOME_UNKNOWN',
]);
