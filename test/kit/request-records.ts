/** Request records as the observe stage creates them. */

import { randomUUID } from 'node:crypto';
import type { ErrorCode } from '../../src/request/errors.ts';
import type { RequestEvent } from '../../src/request/request-events.ts';
import type { RequestRecord } from '../../src/telemetry/request-record.ts';

/** A payment that the bank accepted, within 12 ms. */
export function requestRecord(
  overrides: Partial<RequestRecord> = {},
  events: readonly RequestEvent[] = [],
): RequestRecord {
  return {
    receivedAtMs: Date.UTC(2026, 0, 31, 12),
    durationMs: 12,
    requestId: randomUUID(),
    request: {
      operation: 'initiatePayment',
      lane: 'write',
      client: 'shop',
      tenant: 'merchants',
      tenantId: 'merchants',
    },
    network: undefined,
    environment: 'sandbox',
    status: 201,
    servedFrom: 'bank',
    upstreamMs: 10,
    error: undefined,
    trace: undefined,
    events: events.map((event, index) => ({ afterMs: index, event })),
    ...overrides,
  };
}

/** A payment that the gateway failed. */
export const failedRecord = (code: ErrorCode, status: number) =>
  requestRecord({
    status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: { code, why: 'Why.', proxyError: 'destination_unavailable', stack: undefined },
  });
