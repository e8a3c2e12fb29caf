import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRecentRequests } from '../../../src/telemetry/recent-requests.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

describe('what an instance remembers of requests', () => {
  test('is told as an account: who, where, what came of it, and each step with its time', () => {
    const decisions = createRecentRequests();
    const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
    const call = { what: 'call', attempt: 1, connection: 'new', totalMs: 9.876, status: 201 } as const;
    decisions.onRequestEnd(requestRecord({ requestId }, [{ what: 'turn', waitedMs: 0.123 }, call]));

    assert.deepEqual(decisions.of(requestId), [
      {
        at: '2026-01-31T12:00:00.000Z',
        xRequestId: requestId,
        operation: 'initiatePayment',
        client: 'shop',
        tenant: 'merchants',
        environment: 'sandbox',
        status: 201,
        servedFrom: 'bank',
        durationMs: 12,
        steps: [
          { afterMs: 0, what: 'turn', waitedMs: 0.1 },
          { afterMs: 1, ...call, totalMs: 9.9 },
        ],
      },
    ]);
  });

  test('is found in any letter case, the newest first, with why the gateway refused it', () => {
    const decisions = createRecentRequests();
    const requestId = 'ABCDEF00-0000-4000-8000-00000000000a';
    decisions.onRequestEnd({ ...failedRecord('CIRCUIT_OPEN', 503), requestId });
    decisions.onRequestEnd(requestRecord({ requestId: requestId.toLowerCase() }));

    const accounts = decisions.of(requestId.toUpperCase());
    assert.deepEqual(
      accounts.map(({ status, error, why }) => [status, error, why]),
      [
        [201, undefined, undefined],
        [503, 'CIRCUIT_OPEN', 'Why.'],
      ],
    );
  });

  test('says null of what was not known yet at the door', () => {
    const decisions = createRecentRequests();
    const refusal = { ...failedRecord('QUOTA_EXCEEDED', 429), asked: undefined, environment: undefined };
    decisions.onRequestEnd({ ...refusal, requestId: 'an-id' });
    const [account] = decisions.of('an-id');
    const { operation, client, tenant, environment } = account ?? assert.fail();
    assert.deepEqual([operation, client, tenant, environment], [null, null, null, null]);
  });

  test('grows by what becomes known after the answer', () => {
    const decisions = createRecentRequests();
    const steps = [...requestRecord().steps];
    decisions.onRequestEnd(requestRecord({ requestId: 'an-id', steps }));
    steps.push({ afterMs: 40_000, event: { what: 'late-answer', status: 201 } });
    assert.deepEqual(decisions.of('an-id')[0]?.steps, [
      { afterMs: 40_000, what: 'late-answer', status: 201 },
    ]);
  });

  test('is kept apart by lane and door: no flood of polls or refusals drives a payment out', () => {
    const decisions = createRecentRequests(3);
    decisions.onRequestEnd(requestRecord({ requestId: 'a-payment' }));
    const { asked } = requestRecord();
    for (let one = 0; one < 10; one++) {
      decisions.onRequestEnd(
        requestRecord({ asked: asked && { ...asked, lane: 'status' }, requestId: 'a-poll' }),
      );
      decisions.onRequestEnd(requestRecord({ asked: undefined, requestId: 'at-the-door' }));
    }
    const found = ['a-payment', 'a-poll', 'at-the-door'].map((id) => decisions.of(id).length);
    assert.deepEqual(found, [1, 3, 3]);
  });

  test('is as much as fits: the oldest goes first, and nothing is remembered of what has no id', () => {
    const decisions = createRecentRequests(3);
    for (const requestId of ['1', '2', '3', undefined, '4'])
      decisions.onRequestEnd(requestRecord({ requestId }));
    assert.deepEqual(
      ['1', '2', '3', '4'].map((id) => decisions.of(id).length),
      [0, 1, 1, 1],
    );
  });
});
