/** Decisions as the line tells them. */

import { randomUUID } from 'node:crypto';
import type { RequestEvent } from '../../src/request/request-events.ts';
import type { RequestRecord } from '../../src/telemetry/request-record.ts';

/** A payment that the bank made, in 12 ms. */
export function requestRecord(
  over: Partial<RequestRecord> = {},
  facts: readonly RequestEvent[] = [],
): RequestRecord {
  return {
    receivedAtMs: Date.UTC(2026, 0, 31, 12),
    durationMs: 12,
    requestId: randomUUID(),
    asked: { operation: 'initiatePayment', lane: 'write', client: 'shop', tenant: 'merchants' },
    environment: 'sandbox',
    status: 201,
    servedFrom: 'bank',
    upstreamMs: 10,
    error: undefined,
    trace: undefined,
    steps: facts.map((fact, index) => ({ afterMs: index, event: fact })),
    ...over,
  };
}

/** One that the gateway failed by itself. */
export const failedRecord = (code: 'CIRCUIT_OPEN' | 'OUTCOME_UNKNOWN' | 'QUOTA_EXCEEDED', status: number) =>
  requestRecord({
    status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: { code, why: 'Why.', proxyError: 'destination_unavailable' },
  });
