/** The line that each request leaves in the log, and the one that a late answer leaves. */

import { type ErrorCode, kinds } from '../flow/errors.ts';
import type { Decision, Observer } from './decision.ts';
import type { Log, LogFields, LogLevel } from './log.ts';

/** Logs one line a request, as loudly as whose fault it is asks for. */
export const logRequests = (log: Log): Observer => ({
  decided(decision) {
    const { error, asked } = decision;
    if (!error) log('info', 'request', fieldsOf(decision));
    else log(loudnessOf(error.code), asked ? 'request failed' : 'request refused', fieldsOf(decision));
  },
  later(fact, { requestId, environment }) {
    if (fact.what === 'late-answer')
      log('warn', 'a late answer', { requestId, environment, status: fact.status });
  },
});

/** What is `undefined` does not stand in the line. */
function fieldsOf(decision: Decision): LogFields {
  const { requestId, asked, durationMs, network, environment, status } = decision;
  const { error, servedFrom, upstreamMs } = decision;
  return {
    requestId,
    operation: asked?.operation,
    client: asked?.client,
    tenant: asked?.tenant,
    durationMs: asked && rounded(durationMs ?? 0),
    network,
    environment,
    status,
    error: error?.code,
    why: error?.why,
    proxyError: error?.proxyError,
    stack: error?.stack,
    servedFrom,
    upstreamMs: upstreamMs && rounded(upstreamMs),
  };
}

function loudnessOf(code: ErrorCode): LogLevel {
  if (code === 'INTERNAL') return 'error';
  return kinds[code].origin === 'tpp' ? 'info' : 'warn';
}

const rounded = (ms: number) => Math.round(ms * 10) / 10;
