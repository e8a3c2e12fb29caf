/** What the record of a request means, for the TPP that looks it up and for operators. */

import { operations } from '../pis/operations.ts';
import {
  type AdvisedOperation,
  type ErrorCode,
  GatewayError,
  isErrorCode,
  withAdvice,
} from '../request/errors.ts';
import type { StoredRequest } from './request-search.ts';

interface Explained extends Pick<StoredRequest, 'operation' | 'status' | 'steps'> {
  readonly bankError?: string | undefined;
  readonly error?: string | undefined;
  readonly why?: string | undefined;
}

/** What a response means, and what to do; `null` for a success, and for a request that is still running. */
export function explanationOf(request: Explained): string | null {
  const { operation, status, bankError, error, why = '', steps } = request;
  if (status === null) return null;
  const definition = operations.find(({ name }) => name === operation);
  const isRecordedInDoubt = steps.findLast(({ what }) => what === 'recorded')?.as === 'in-doubt';
  const late = steps.find(({ what }) => what === 'late-answer');
  if (late) {
    const answeredLater = `${why} The bank answered later, with ${late.status}`;
    return isRecordedInDoubt
      ? advised('OUTCOME_UNKNOWN', `${answeredLater}, which leaves open what it has done.`, definition)
      : `${answeredLater}: repeat the request with the same X-Request-ID to get its response.`;
  }
  if (error !== undefined) return isErrorCode(error) ? advised(error, why, definition) : why;
  const unreadable = steps.find(({ what }) => what === 'unreadable');
  const reason = unreadable && `The gateway cannot read the bank's response (${unreadable.why}).`;
  // Also after a 5xx, because a proxy in front of the bank may have sent it.
  const isInDoubt = isRecordedInDoubt || (definition?.lane === 'write' && status >= 500);
  if (status < 400 && !isInDoubt) return reason ?? null;
  const code = bankError === undefined ? '' : ` ${bankError}`;
  const answered =
    isInDoubt && status < 500
      ? `The bank answered ${status}${code}, which leaves open what it has done.${reason === undefined ? '' : ` ${reason}`}`
      : `The bank answered ${status}${code}; the reason is in its response.`;
  return isInDoubt ? advised('OUTCOME_UNKNOWN', answered, definition) : answered;
}

/** With the advice that the TPP gets in the body of the error, if the operation is known. */
const advised = (code: ErrorCode, text: string, operation: AdvisedOperation | undefined): string =>
  operation ? withAdvice(new GatewayError(code, text), operation).message : text;
