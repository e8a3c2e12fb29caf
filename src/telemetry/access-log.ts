/** The access log: one line for each request, and one for each response of the bank that arrives after the deadline. */

import { type ErrorCode, errorTable } from '../request/errors.ts';
import type { Log, LogFields, LogLevel } from './log.ts';
import { type RequestFailure, type RequestObserver, type RequestRecord, roundMs } from './request-record.ts';

/** The level depends on who caused the error: TPP info, bank and gateway warn, a bug error. */
export const createAccessLog = (log: Log): RequestObserver => ({
  onRequestEnd(record) {
    const { error, request } = record;
    if (!error) log('info', 'request', answeredFields(record));
    else
      log(levelOf(error.code), request ? 'request failed' : 'request refused', failedFields(record, error));
  },
  onLateEvent(event, { requestId, environment }) {
    if (event.what === 'late-answer')
      log('warn', 'late response', { requestId, environment, status: event.status });
  },
});

/** The fields of nearly all lines. Without those of errors, because the log would omit them one by one. */
const answeredFields = (record: RequestRecord): LogFields => ({
  requestId: record.requestId,
  operation: record.request?.operation,
  client: record.request?.client,
  tenant: record.request?.tenant,
  durationMs: roundMs(record.durationMs ?? 0),
  waitedMs: record.waitedMs && roundMs(record.waitedMs),
  environment: record.environment,
  status: record.status,
  servedFrom: record.servedFrom,
  outcome: isInDoubt(record) ? 'in-doubt' : undefined,
  upstreamMs: record.upstreamMs && roundMs(record.upstreamMs),
});

/** Whether the bank has answered a write without saying what it has done. */
const isInDoubt = ({ request, events }: RequestRecord): boolean =>
  request?.lane === 'write' &&
  events.some(({ event }) => event.what === 'recorded' && event.as === 'in-doubt');

/** The log omits fields that are `undefined`. */
const failedFields = (record: RequestRecord, error: RequestFailure): LogFields => ({
  requestId: record.requestId,
  operation: record.request?.operation,
  client: record.request?.client ?? record.refusedClient?.name,
  tenant: record.request?.tenant ?? record.refusedClient?.tenant,
  durationMs: record.request && roundMs(record.durationMs ?? 0),
  network: record.network,
  environment: record.environment,
  status: record.status,
  error: error.code,
  why: error.why,
  proxyError: error.proxyError,
  stack: error.stack,
});

export function levelOf(code: ErrorCode): LogLevel {
  if (code === 'INTERNAL') return 'error';
  return errorTable[code].origin === 'tpp' ? 'info' : 'warn';
}
