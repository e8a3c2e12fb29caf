/** Describes a recorded request for the TPP that has sent it: without the names of instances and clients, and without queues. */

import { errorTable, isErrorCode } from '../request/errors.ts';
import { explanationOf } from '../telemetry/explain-request.ts';
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
  const { at, operation, environment, status, durationMs, bankError = null, error = null } = request;
  return {
    at,
    operation,
    environment,
    paymentId: operation === 'initiatePayment' ? paymentId : null,
    status,
    bankError,
    error,
    explanation: explanationOf(request),
    help: error !== null && errorPageUrl !== null ? `${errorPageUrl}#${error.toLowerCase()}` : null,
    seenByBank: seenByBank(request),
    servedFrom:
      status === null ? null : (sources.find((source) => source === request.servedFrom) ?? 'gateway'),
    durationMs,
  };
}

const sources = ['bank', 'cache', 'stale-cache', 'shared', 'ledger'] as const;

function seenByBank(request: StoredRequest): ReportedRequest['seenByBank'] {
  const { operation, status, error, servedFrom, steps } = request;
  if (operation === null) return 'no'; // it was refused before the pipeline
  if (status === null) return 'maybe'; // a call is a step only when it has ended
  const calls = steps.filter(({ what }) => what === 'call' || what === 'late-answer');
  if (servedFrom === 'bank' || calls.some(({ status }) => status !== undefined)) return 'yes';
  const errors = [error, ...calls.map((call) => call.error)];
  return errors.some(mayHaveReachedBank) ? 'maybe' : 'no';
}

const mayHaveReachedBank = (error: unknown) =>
  typeof error === 'string' && isErrorCode(error) && errorTable[error].reachedBank === 'maybe';
