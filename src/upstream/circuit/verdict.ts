/** What an outcome says about the bank: the one table of what moves a circuit. */

import { asGatewayError, type ErrorCode } from '../../flow/errors.ts';

/** `nothing` where the bank is as well or unwell as before: its refusals, ours, a TPP that left. */
export type Verdict = 'well' | 'failing' | 'nothing';

/** Of an answer: its status. 501 is an answer about the operation; 429 is about the rate, which the shaper looks after. */
export function verdictOfStatus(status: number): Verdict {
  if (status >= 500 && status !== 501) return 'failing';
  return status < 400 ? 'well' : 'nothing';
}

/** Of an answer to the gateway's own question: whatever the bank says below 500, it is there. */
export const verdictOfProbe = (status: number): Verdict => (status < 500 ? 'well' : 'failing');

/** Of a call that brought no answer. */
export function verdictOfFailure(thrown: unknown): Verdict {
  return failing.has(asGatewayError(thrown).code) ? 'failing' : 'nothing';
}

/** Refused, reset, timed out, malformed. All else is ours, and was never the bank's doing. */
const failing: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_UNREACHED',
  'UPSTREAM_MALFORMED',
  'OUTCOME_UNKNOWN',
]);
