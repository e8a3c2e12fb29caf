/** Request records as the observe stage creates them. */

import { randomUUID } from 'node:crypto';
import type { ErrorCode } from '../../src/request/errors.ts';
import type { RequestEvent } from '../../src/request/request-events.ts';
import type { RequestRecord } from '../../src/telemetry/request-record.ts';

let lastNumber = 0;

/** A payment that the bank accepted, within 12 ms. */
export function requestRecord(
  overrides: Partial<RequestRecord> = {},
  events: readonly RequestEvent[] = [],
): RequestRecord {
  return {
    number: ++lastNumber,
    receivedAtMs: Date.UTC(2026, 0, 31, 12),
    durationMs: 12,
    requestId: randomUUID(),
    request: {
      operation: 'initiatePayment',
      lane: 'write',
      client: 'shop',
      tenant: 'merchants',
      tenantId: 'merchants',
      product: 'payments/sepa-credit-transfers',
      paymentId: undefined,
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
export const failedRecord = (code: ErrorCode, status: number, isOfTenant = false) =>
  requestRecord({
    status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: { code, why: 'Why.', proxyError: 'destination_unavailable', isOfTenant, stack: undefined },
  });

/** Events of a payment that the bank accepted at the second attempt. */
export const paymentEvents: readonly RequestEvent[] = [
  { what: 'ledger', verdict: 'claimed', waitedMs: 0.04 },
  { what: 'environment', environment: 'sandbox', why: 'active' },
  { what: 'permit', waitedMs: 12_345.67 },
  {
    what: 'call',
    attempt: 2,
    connection: 'reused',
    connectMs: 0.1,
    firstByteMs: 2.25,
    totalMs: 3,
    status: 201,
  },
  { what: 'recorded', as: 'answered' },
];
