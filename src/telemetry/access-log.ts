/** The access log: one line for each request, and one for each response of the bank that arrives after the deadline. */

import { type ErrorCode, errorTable } from '../request/errors.ts';
import type { Log, LogFields, LogLevel } from './log.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** The level depends on who caused the error: TPP info, bank and gateway warn, a bug error. */
export const createAccessLog = (log: Log): RequestObserver => ({
  onRequestEnd(record) {
    const { error, request } = record;
    if (!error) log('info', 'request', fieldsOf(record));
    else log(levelOf(error.code), request ? 'request failed' : 'request refused', fieldsOf(record));
  },
  onLateEvent(event, { requestId, environment }) {
    if (event.what === 'late-answer')
      log('warn', 'a late answer', { requestId, environment, status: event.status });
  },
});

/** The log omits fields that are `undefined`. */
function fieldsOf(record: RequestRecord): LogFields {
  const { requestId, request, durationMs, network, environment, status } = record;
  const { error, servedFrom, upstreamMs } = record;
  return {
    requestId,
    operation: request?.operation,
    client: request?.client,
    tenant: request?.tenant,
    durationMs: request && roundMs(durationMs ?? 0),
    network,
    environment,
    status,
    error: error?.code,
    why: error?.why,
    proxyError: error?.proxyError,
    stack: error?.stack,
    servedFrom,
    upstreamMs: upstreamMs && roundMs(upstreamMs),
  };
}

function levelOf(code: ErrorCode): LogLevel {
  if (code === 'INTERNAL') return 'error';
  return errorTable[code].origin === 'tpp' ? 'info' : 'warn';
}

const roundMs = (ms: number) => Math.round(ms * 10) / 10;
