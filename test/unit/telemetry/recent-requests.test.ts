import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { createRecentRequests, type RecentRequests } from '../../../src/telemetry/recent-requests.ts';
import { failedRecord, paymentEvents, requestRecord } from '../../kit/request-records.ts';

const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';

const reportsOf = (recentRequests: RecentRequests, id: string) =>
  recentRequests.find(id).map(({ report }) => report);

describe('the recent requests of an instance', () => {
  test('report who requested what, the result, and each event with its time', () => {
    const recentRequests = createRecentRequests();
    const call = { what: 'call', attempt: 1, connection: 'new', totalMs: 9.876, status: 201 } as const;
    recentRequests.onRequestEnd(requestRecord({ requestId }, [{ what: 'permit', waitedMs: 0.123 }, call]));

    assert.deepEqual(reportsOf(recentRequests, requestId), [
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
          { afterMs: 0, what: 'permit', waitedMs: 0.1 },
          { afterMs: 1, ...call, totalMs: 9.9 },
        ],
      },
    ]);
  });

  test('find an id in any letter case, and list the newest request first', () => {
    const recentRequests = createRecentRequests();
    const requestId = 'ABCDEF00-0000-4000-8000-00000000000a';
    recentRequests.onRequestEnd({ ...failedRecord('CIRCUIT_OPEN', 503), requestId });
    recentRequests.onRequestEnd(requestRecord({ requestId: requestId.toLowerCase() }));

    const reports = reportsOf(recentRequests, requestId.toUpperCase());
    assert.deepEqual(
      reports.map(({ status, error, why }) => [status, error, why]),
      [
        [201, undefined, undefined],
        [503, 'CIRCUIT_OPEN', 'Why.'],
      ],
    );
  });

  test('report null for what was unknown when the request was refused', () => {
    const recentRequests = createRecentRequests();
    const refusal = { ...failedRecord('QUOTA_EXCEEDED', 429), request: undefined, environment: undefined };
    recentRequests.onRequestEnd({ ...refusal, requestId: 'an-id' });
    const [report] = reportsOf(recentRequests, 'an-id');
    const { operation, client, tenant, environment } = report ?? assert.fail();
    assert.deepEqual([operation, client, tenant, environment], [null, null, null, null]);
  });

  test('report the client of a request that was refused after the client was identified', () => {
    const recentRequests = createRecentRequests();
    for (const id of [requestId, 'an-id'])
      recentRequests.onRequestEnd({
        ...failedRecord('QUOTA_EXCEEDED', 429),
        request: undefined,
        refusedClient: { name: 'shop', tenant: 'merchants', tenantId: 'merchants' },
        requestId: id,
      });
    for (const id of [requestId, 'an-id']) {
      const [report] = reportsOf(recentRequests, id);
      assert.deepEqual([report?.client, report?.tenant, report?.operation], ['shop', 'merchants', null]);
    }
  });

  test('report an event that follows the end of the request', () => {
    const recentRequests = createRecentRequests();
    const events = [...requestRecord().events];
    recentRequests.onRequestEnd(requestRecord({ requestId: 'an-id', events }));
    events.push({ afterMs: 40_000, event: { what: 'late-answer', status: 201 } });
    assert.deepEqual(reportsOf(recentRequests, 'an-id')[0]?.steps, [
      { afterMs: 40_000, what: 'late-answer', status: 201 },
    ]);
  });

  test('report an event that follows the end of a successful request', () => {
    const recentRequests = createRecentRequests();
    const [earlier, record] = [1, 2].map((ms) => requestRecord({ requestId, receivedAtMs: ms }));
    assert.ok(earlier && record);
    for (const each of [earlier, record]) recentRequests.onRequestEnd(each);
    const event = { what: 'recorded', as: 'answered' } as const;
    recentRequests.onLateEvent(event, { ...record, events: [{ afterMs: 3, event }] });
    assert.deepEqual(
      reportsOf(recentRequests, requestId).map(({ steps }) => steps),
      [[{ afterMs: 3, ...event }], []],
    );
  });

  test('report a late event only for its own request, not for another one of the same time', () => {
    const recentRequests = createRecentRequests();
    const record = requestRecord({ requestId });
    const otherId = 'abcdef00-0000-4000-8000-00000000000a';
    for (const each of [record, requestRecord({ requestId: otherId })]) recentRequests.onRequestEnd(each);
    const event = { what: 'recorded', as: 'answered' } as const;
    recentRequests.onLateEvent(event, { ...record, events: [{ afterMs: 3, event }] });
    assert.deepEqual(
      [requestId, otherId].map((id) => reportsOf(recentRequests, id).map(({ steps }) => steps.length)),
      [[1], [requestRecord().events.length]],
    );
  });

  test('report every kind of event, also of a record with more events than fit into a slot', () => {
    const recentRequests = createRecentRequests();
    const events: readonly RequestEvent[] = [
      ...paymentEvents,
      { what: 'cache', verdict: 'miss' },
      { what: 'circuit-refused', state: 'open' },
      { what: 'queue-refused', code: 'QUEUE_FULL', waitedMs: 0 },
      { what: 'client-disconnected', waitedMs: 1 },
      { what: 'call', attempt: 1, connection: 'none', totalMs: 2_000, error: 'UPSTREAM_UNREACHED' },
      { what: 'retry', why: 'UPSTREAM_UNREACHED' },
      { what: 'late-answer', status: 201 },
    ];
    const rounded = (event: RequestEvent) =>
      Object.fromEntries(
        Object.entries(event).map(([name, value]) => [
          name,
          name.endsWith('Ms') ? Math.round(Number(value) * 10) / 10 : value,
        ]),
      );
    const lists = [...events.map((event) => [event]), events, [...events, ...events, ...events]];
    for (const list of lists) recentRequests.onRequestEnd(requestRecord({ requestId }, list));
    assert.deepEqual(
      reportsOf(recentRequests, requestId).map(({ steps }) => steps),
      lists.map((list) => list.map((event, afterMs) => ({ afterMs, ...rounded(event) }))).toReversed(),
    );
  });

  test('store the record of a successful request as numbers instead of the object', () => {
    const recentRequests = createRecentRequests();
    const events = [{ afterMs: 1, event: { what: 'permit', waitedMs: 2 } as const }];
    recentRequests.onRequestEnd(requestRecord({ requestId, events }));
    events.length = 0; // a stored object would lose its event
    assert.equal(reportsOf(recentRequests, requestId)[0]?.steps.length, 1);
  });

  test('keep a payment although polls and refused requests exceed their own limits', () => {
    const recentRequests = createRecentRequests(3);
    recentRequests.onRequestEnd(requestRecord({ requestId: 'a-payment' }));
    const { request } = requestRecord();
    for (let one = 0; one < 10; one++) {
      recentRequests.onRequestEnd(
        requestRecord({ request: request && { ...request, lane: 'status' }, requestId: 'a-poll' }),
      );
      recentRequests.onRequestEnd(requestRecord({ request: undefined, requestId: 'a-refusal' }));
    }
    const found = ['a-payment', 'a-poll', 'a-refusal'].map((id) => reportsOf(recentRequests, id).length);
    assert.deepEqual(found, [1, 3, 3]);
  });

  test('evict the oldest request first, and do not store requests without an id', () => {
    const recentRequests = createRecentRequests(3);
    for (const requestId of ['1', '2', '3', undefined, '4'])
      recentRequests.onRequestEnd(requestRecord({ requestId }));
    assert.deepEqual(
      ['1', '2', '3', '4'].map((id) => reportsOf(recentRequests, id).length),
      [0, 1, 1, 1],
    );
  });

  test('pass each new record once, by lane, and a changed one again', () => {
    const recentRequests = createRecentRequests(3);
    const taken = () => {
      const all: (readonly [lane: string, number: number, isChanged: boolean])[] = [];
      const evicted = recentRequests.takeNew((lane, number, isChanged) =>
        all.push([lane, number, isChanged]),
      );
      return { all, evicted };
    };
    const { request } = requestRecord();
    const record = requestRecord({ requestId, receivedAtMs: 1 });
    recentRequests.onRequestEnd(requestRecord({ request: request && { ...request, lane: 'status' } }));
    recentRequests.onRequestEnd(record);
    recentRequests.onRequestEnd(requestRecord({ request: undefined, requestId: 'a-refusal' }));
    const all = [
      ['write', 1, false],
      ['status', 0, false],
      ['refused', 2, false],
    ];
    assert.deepEqual(taken(), { all, evicted: 0 });
    assert.deepEqual(taken(), { all: [], evicted: 0 });

    recentRequests.onLateEvent({ what: 'recorded', as: 'answered' }, record);
    assert.deepEqual(taken(), { all: [['write', 1, true]], evicted: 0 });
    for (let one = 0; one < 5; one++) recentRequests.onRequestEnd(requestRecord());
    recentRequests.onLateEvent({ what: 'recorded', as: 'answered' }, record); // already evicted
    assert.deepEqual(taken(), { all: [5, 6, 7].map((number) => ['write', number, false]), evicted: 2 });
  });

  test('report when a batch of records is complete', () => {
    const recentRequests = createRecentRequests();
    let batches = 0;
    recentRequests.onBatch(3, () => {
      batches += 1;
      recentRequests.takeNew(() => {});
    });
    for (let one = 0; one < 7; one++) recentRequests.onRequestEnd(requestRecord());
    assert.equal(batches, 2);
  });
});
