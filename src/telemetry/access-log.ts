/** The line that each request leaves in the log, and the one that a late answer leaves. */

import { type ErrorCode, errorTable } from '../request/errors.ts';
import type { Log, LogFields, LogLevel } from './log.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** Logs one line a request, as loudly as whose fault it is asks for. */
export const createAccessLog = (log: Log): RequestObserver => ({
  onRequestEnd(decision) {
    const { error, asked } = decision;
    if (!error) log('info', 'request', fieldsOf(decision));
    else log(levelOf(error.code), asked ? 'request failed' : 'request refused', fieldsOf(decision));
  },
  onLateEvent(fact, { requestId, environment }) {
    if (fact.what === 'late-answer')
      log('warn', 'a late answer', { requestId, environment, status: fact.status });
  },
});

/** What is `undefined` does not stand in the line. */
function fieldsOf(decision: RequestRecord): LogFields {
  const { requestId, asked, durationMs, network, environment, status } = decision;
  const { error, servedFrom, upstreamMs } = decision;
  return {
    requestId,
    operation: asked?.operation,
    client: asked?.client,
    tenant: asked?.tenant,
    durationMs: asked && roundMs(durationMs ?? 0),
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
