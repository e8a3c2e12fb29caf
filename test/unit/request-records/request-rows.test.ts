import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { requestOf, rowOf } from '../../../src/request-records/request-rows.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { failedRecord, paymentEvents, requestRecord } from '../../kit/request-records.ts';

const shown = (record: RequestRecord) => requestOf(rowOf(record, 'gateway-1'), (id) => `name of ${id}`);

const outcomeAfter = (record: Partial<RequestRecord>, ...events: readonly RequestEvent[]) =>
  shown(requestRecord(record, events)).outcome;

describe('the row of a request', () => {
  test('contains what operators see, with one decimal', () => {
    const created: RequestEvent = { what: 'payment', paymentId: 'payment-1' };
    const record = requestRecord({ durationMs: 12.345 }, [...paymentEvents, created]);
    const { steps, ...request } = shown(record);
    assert.deepEqual(request, {
      at: '2026-01-31T12:00:00.000Z',
      xRequestId: record.requestId,
      operation: 'initiatePayment',
      client: 'shop',
      tenant: 'name of merchants',
      environment: 'sandbox',
      product: 'payments/sepa-credit-transfers',
      paymentId: 'payment-1',
      status: 201,
      outcome: 'succeeded',
      servedFrom: 'bank',
      durationMs: 12.3,
      instance: 'gateway-1',
    });
    assert.deepEqual(steps[0], { afterMs: 0, what: 'ledger', verdict: 'claimed', waitedMs: 0 });
    assert.deepEqual(steps[2], { afterMs: 2, what: 'permit', waitedMs: 12_345.7 });
    assert.ok(steps.every(({ what }) => what !== 'payment'));
  });

  test('of a request that was refused before it was known has no names', () => {
    const { tenant, client, operation, product, paymentId, error, why } = shown({
      ...failedRecord('PATH_UNKNOWN', 404),
      request: undefined,
    });
    assert.deepEqual([tenant, client, operation, product, paymentId], [null, null, null, null, null]);
    assert.deepEqual([error, why], ['PATH_UNKNOWN', 'Why.']);
  });

  test('has no payment id that PostgreSQL cannot store', () => {
    for (const paymentId of ['a\0b', '\ud800'])
      assert.equal(shown(requestRecord({}, [{ what: 'payment', paymentId }])).paymentId, null);
  });

  test('distinguishes refusals of the gateway from those of the bank, and an unknown outcome', () => {
    const bankError: RequestEvent = { what: 'bank-error', code: 'CERTIFICATE_REVOKED' };
    assert.equal(outcomeAfter({ status: 401 }, bankError), 'refused-by-bank');
    assert.equal(outcomeAfter({ status: 201 }, bankError), 'refused-by-bank', 'a payment that was rejected');
    assert.equal(outcomeAfter({ status: 503 }), 'failed');
    assert.equal(shown(failedRecord('UPSTREAM_UNREACHED', 502)).outcome, 'failed');
    assert.equal(shown(failedRecord('QUOTA_EXCEEDED', 429)).outcome, 'refused');
    assert.equal(outcomeAfter({ status: 202 }, { what: 'recorded', as: 'in-doubt' }), 'in-doubt');
    const inDoubt: RequestEvent = { what: 'recorded', as: 'in-doubt' };
    const answered: RequestEvent = { what: 'recorded', as: 'answered' };
    const late = (status: number): RequestEvent => ({ what: 'late-answer', status });
    assert.equal(outcomeAfter({ status: 504 }, inDoubt, answered, late(201)), 'succeeded');
    assert.equal(outcomeAfter({ status: 504 }, inDoubt, answered, late(400)), 'refused-by-bank');
    assert.equal(outcomeAfter({ status: 504 }, inDoubt, inDoubt, late(302)), 'in-doubt');
  });
});
