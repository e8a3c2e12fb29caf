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
const unreached: RequestEvent = {
  what: 'call',
  attempt: 1,
  connection: 'none',
  totalMs: 2,
  error: 'UPSTREAM_UNREACHED',
};
const made: RequestEvent = {
  what: 'call',
  attempt: 2,
  connection: 'new',
  connectMs: 1,
  totalMs: 50,
  status: 201,
};

const stepsOf = (facts: readonly (readonly [number, RequestEvent])[]): readonly TimedEvent[] =>
  facts.map(([afterMs, event]) => ({ afterMs, event }));

describe('the spans of a request', () => {
  test('are one for it, one for each wait, and one for the call, however often it was tried', () => {
    const decision = requestRecord({
      receivedAtMs: 1_000,
      steps: stepsOf([
        [1, { what: 'ledger', verdict: 'claimed', waitedMs: 0.5 }],
        [1, { what: 'environment', environment: 'sandbox', why: 'active' }],
        [4, { what: 'turn', waitedMs: 3 }],
        [6, unreached],
        [6, { what: 'retry', why: 'UPSTREAM_UNREACHED' }],
        [56, made],
      ]),
    });
    assert.deepEqual(
      spansOf(decision, trace).map(({ name, kind, startMs, endMs, failed }) => [
        name,
        kind,
        startMs,
        endMs,
        failed,
      ]),
      [
        ['initiatePayment', 'server', 1_000, 1_012, false],
        ['wait for the ledger', 'internal', 1_000.5, 1_001, false],
        ['wait for a turn', 'internal', 1_001, 1_004, false],
        ['call the bank', 'client', 1_004, 1_056, false],
      ],
    );
    const call = spansOf(decision, trace).at(-1);
    assert.deepEqual([call?.spanId, call?.parentId], [trace.upstreamSpanId, trace.spanId]);
    assert.deepEqual(
      [call?.attributes['penstock.attempts'], call?.attributes['penstock.connect_ms']],
      [2, 1],
    );
  });

  test('have none for a call that is still being tried, which then comes with both attempts', () => {
    const steps = [
      ...stepsOf([
        [4, { what: 'turn', waitedMs: 3 }],
        [6, unreached],
        [6, { what: 'retry', why: 'UPSTREAM_UNREACHED' }],
      ]),
    ];
    const decision = { ...failedRecord('OUTCOME_UNKNOWN', 504), steps };
    const names = () => spansOf(decision, trace).map(({ name }) => name);
    assert.deepEqual(names(), ['initiatePayment', 'wait for a turn']);
    steps.push({ afterMs: 90, event: made });
    const [late, ...more] = lateSpansOf(decision, trace);
    assert.deepEqual(
      [late?.name, late?.attributes['penstock.attempts'], more.length],
      ['call the bank', 2, 0],
    );
  });

  test('are errors where the gateway or the bank failed, and where a turn did not come', () => {
    const refused: RequestEvent = { what: 'turn-refused', code: 'QUEUE_FULL', waitedMs: 1 };
    const decision = { ...failedRecord('CIRCUIT_OPEN', 503), steps: stepsOf([[1, refused]]) };
    assert.deepEqual(
      spansOf(decision, trace).map(({ failed }) => failed),
      [true, true],
    );
    assert.equal(spansOf({ ...failedRecord('QUOTA_EXCEEDED', 429), steps: [] }, trace)[0]?.failed, false);
  });
});
