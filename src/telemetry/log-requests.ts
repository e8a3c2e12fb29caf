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

function fieldsOf({ requestId, asked, durationMs, environment, status, ...rest }: Decision): LogFields {
  const { error, network, servedFrom, upstreamMs } = rest;
  return {
    requestId,
    ...(asked && { operation: asked.operation, client: asked.client, tenant: asked.tenant }),
    ...(asked && { durationMs: rounded(durationMs ?? 0) }),
    ...(network !== undefined && { network }),
    environment,
    status,
    ...(error && { error: error.code, why: error.why, proxyError: error.proxyError }),
    ...(error?.stack !== undefined && { stack: error.stack }),
    ...(!error && { servedFrom }),
    ...(upstreamMs !== undefined && { upstreamMs: rounded(upstreamMs) }),
  };
}

function loudnessOf(code: ErrorCode): LogLevel {
  if (code === 'INTERNAL') return 'error';
  return kinds[code].origin === 'tpp' ? 'info' : 'warn';
}

const rounded = (ms: number) => Math.round(ms * 10) / 10;
