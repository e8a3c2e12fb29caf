/** Describes a recorded request for the TPP that has sent it: without the names of instances and clients, and without queues. */

import { operations } from '../pis/operations.ts';
import { type ErrorCode, errorTable, GatewayError, withAdvice } from '../request/errors.ts';
import type { StoredRequest } from '../telemetry/request-search.ts';
import type { ReportedRequest } from './look-up-report.ts';

interface DescriptionContext {
  /** The payment that initiations with this X-Request-ID have created. */
  readonly paymentId: string | null;
  /** `listen.errorPageUrl` */
  readonly errorPageUrl: string | null;
}

export function describeRequest(
  request: StoredRequest,
  { paymentId, errorPageUrl }: DescriptionContext,
): ReportedRequest {
  const { at, operation, environment, status, durationMs, error = null } = request;
  return {
    at,
    operation,
    environment,
    paymentId: operation === 'initiatePayment' ? paymentId : null,
    status,
    error,
    explanation: explanationOf(request),
    help: error !== null && errorPageUrl !== null ? `${errorPageUrl}#${error.toLowerCase()}` : null,
    seenByBank: seenByBank(request),
    servedFrom: sources.find((source) => source === request.servedFrom) ?? 'gateway',
    durationMs,
  };
}

const sources = ['bank', 'cache', 'stale-cache', 'shared', 'ledger'] as const;

type Explained = Pick<StoredRequest, 'operation' | 'status' | 'error' | 'why' | 'steps'>;

/** What a response means, and what to do; `null` for a success. */
export function explanationOf({ operation, status, error, why = '', steps }: Explained): string | null {
  const lane = operations.find(({ name }) => name === operation)?.lane;
  const late = steps.find(({ what }) => what === 'late-answer');
  if (late)
    return `${why} The bank answered later, with ${late.status}: repeat the request with the same X-Request-ID to get its response.`;
  if (error !== undefined)
    return lane && isErrorCode(error) ? withAdvice(new GatewayError(error, why), lane).message : why;
  const unreadable = steps.find(({ what }) => what === 'unreadable');
  const reason = unreadable && `The gateway cannot read the bank's response (${unreadable.why}).`;
  const isInDoubt = lane === 'write' && (status >= 500 || steps.some(({ as }) => as === 'in-doubt'));
  if (status < 400 && !isInDoubt) return reason ?? null;
  const answered =
    isInDoubt && status < 500
      ? `The bank answered ${status}, which leaves open what it has done.${reason === undefined ? '' : ` ${reason}`}`
      : `The bank answered ${status}; the reason is in its response.`;
  return lane !== undefined && isInDoubt
    ? withAdvice(new GatewayError('OUTCOME_UNKNOWN', answered), lane).message // after a 5xx, because a proxy in front of the bank may have sent it
    : answered;
}

function seenByBank({ operation, error, servedFrom, steps }: StoredRequest): ReportedRequest['seenByBank'] {
  if (operation === null) return 'no'; // it was refused before the pipeline
  const calls = steps.filter(({ what }) => what === 'call' || what === 'late-answer');
  if (servedFrom === 'bank' || calls.some(({ status }) => status !== undefined)) return 'yes';
  const errors = [error, ...calls.map((call) => call.error)];
  return errors.some(mayHaveReachedBank) ? 'maybe' : 'no';
}

const mayHaveReachedBank = (error: unknown) =>
  typeof error === 'string' && isErrorCode(error) && errorTable[error].reachedBank === 'maybe';

/** A later release may have recorded others. */
const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code);
