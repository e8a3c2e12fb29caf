/** What the record of a request means, for the TPP that looks it up and for operators. */

import { operations } from '../pis/operations.ts';
import { GatewayError, isErrorCode, withAdvice } from '../request/errors.ts';
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
  const lane = operations.find(({ name }) => name === operation)?.lane;
  const late = steps.find(({ what }) => what === 'late-answer');
  if (late) {
    const answeredLater = `${why} The bank answered later, with ${late.status}`;
    if (lane && steps.findLast(({ what }) => what === 'recorded')?.as === 'in-doubt')
      return withAdvice(
        new GatewayError('OUTCOME_UNKNOWN', `${answeredLater}, which leaves open what it has done.`),
        lane,
      ).message;
    return `${answeredLater}: repeat the request with the same X-Request-ID to get its response.`;
  }
  if (error !== undefined)
    return lane && isErrorCode(error) ? withAdvice(new GatewayError(error, why), lane).message : why;
  const unreadable = steps.find(({ what }) => what === 'unreadable');
  const reason = unreadable && `The gateway cannot read the bank's response (${unreadable.why}).`;
  const isInDoubt = lane === 'write' && (status >= 500 || steps.some(({ as }) => as === 'in-doubt'));
  if (status < 400 && !isInDoubt) return reason ?? null;
  const code = bankError === undefined ? '' : ` ${bankError}`;
  const answered =
    isInDoubt && status < 500
      ? `The bank answered ${status}${code}, which leaves open what it has done.${reason === undefined ? '' : ` ${reason}`}`
      : `The bank answered ${status}${code}; the reason is in its response.`;
  return lane !== undefined && isInDoubt
    ? withAdvice(new GatewayError('OUTCOME_UNKNOWN', answered), lane).message // after a 5xx, because a proxy in front of the bank may have sent it
    : answered;
}
