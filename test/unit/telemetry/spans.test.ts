import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RequestEvent, TimedEvent } from '../../../src/request/request-events.ts';
import { lateSpansOf, spansOf } from '../../../src/telemetry/spans.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

const trace = {
  traceId: 'a'.repeat(32),
  parentId: undefined,
  spanId: 'b'.repeat(16),
  upstreamSpanId: 'c'.repeat(16),
  sampled: true,
};
const failedCall: RequestEvent = {
  what: 'call',
  attempt: 1,
  connection: 'none',
  totalMs: 2,
  error: 'UPSTREAM_UNREACHED',
};
const successfulCall: RequestEvent = {
  what: 'call',
  attempt: 2,
  connection: 'new',
  connectMs: 1,
  totalMs: 50,
  status: 201,
};

const timed = (events: readonly (readonly [number, RequestEvent])[]): readonly TimedEvent[] =>
  events.map(([afterMs, event]) => ({ afterMs, event }));

describe('the spans of a request', () => {
  test('are one for the request, one for each wait, and one for all attempts of the call', () => {
    const record = requestRecord({
      receivedAtMs: 1_000,
      events: timed([
        [1, { what: 'ledger', verdict: 'claimed', waitedMs: 0.5 }],
        [1, { what: 'environment', environment: 'sandbox', why: 'active' }],
        [4, { what: 'permit', waitedMs: 3 }],
        [6, failedCall],
        [6, { what: 'retry', why: 'UPSTREAM_UNREACHED' }],
        [56, successfulCall],
      ]),
    });
    assert.deepEqual(
      spansOf(record, trace).map(({ name, kind, startMs, endMs, failed }) => [
        name,
        kind,
        startMs,
        endMs,
        failed,
      ]),
      [
        ['initiatePayment', 'server', 1_000, 1_012, false],
        ['wait for the ledger', 'internal', 1_000.5, 1_001, false],
        ['wait in the queue', 'internal', 1_001, 1_004, false],
        ['call the bank', 'client', 1_004, 1_056, false],
      ],
    );
    const call = spansOf(record, trace).at(-1);
    assert.deepEqual([call?.spanId, call?.parentId], [trace.upstreamSpanId, trace.spanId]);
    assert.deepEqual(
      [call?.attributes['penstock.attempts'], call?.attributes['penstock.connect_ms']],
      [2, 1],
    );
  });

  test('do not contain a running call; its span follows at its end, with both attempts', () => {
    const events = [
      ...timed([
        [4, { what: 'permit', waitedMs: 3 }],
        [6, failedCall],
        [6, { what: 'retry', why: 'UPSTREAM_UNREACHED' }],
      ]),
    ];
    const record = { ...failedRecord('OUTCOME_UNKNOWN', 504), events };
    const names = () => spansOf(record, trace).map(({ name }) => name);
    assert.deepEqual(names(), ['initiatePayment', 'wait in the queue']);
    events.push({ afterMs: 90, event: successfulCall });
    const [late, ...more] = lateSpansOf(record, trace);
    assert.deepEqual(
      [late?.name, late?.attributes['penstock.attempts'], more.length],
      ['call the bank', 2, 0],
    );
  });

  test('are errors if the response is a 5xx or the queue refused the call', () => {
    const refused: RequestEvent = { what: 'queue-refused', code: 'QUEUE_FULL', waitedMs: 1 };
    const record = { ...failedRecord('CIRCUIT_OPEN', 503), events: timed([[1, refused]]) };
    assert.deepEqual(
      spansOf(record, trace).map(({ failed }) => failed),
      [true, true],
    );
    assert.equal(spansOf({ ...failedRecord('QUOTA_EXCEEDED', 429), events: [] }, trace)[0]?.failed, false);
  });
});
