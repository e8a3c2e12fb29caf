import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { startTrace } from '../../../src/telemetry/traceparent.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const startWith = (...values: readonly string[]) =>
  startTrace(
    values.map((value) => ['Traceparent', value] as const),
    0,
  );
const zeros = (count: number) => '0'.repeat(count);

describe('the traceparent of a caller', () => {
  test('is continued with a new span, in the same trace and with the same sampling decision', () => {
    for (const [flags, sampled] of [
      ['01', true],
      ['00', false],
      ['03', true],
      ['02', false],
    ] as const) {
      const { trace, headers } = startWith(`00-${traceId}-${parentId}-${flags}`);
      assert.deepEqual([trace.traceId, trace.parentId, trace.sampled], [traceId, parentId, sampled]);
      assert.deepEqual(headers, [
        ['traceparent', `00-${traceId}-${trace.upstreamSpanId}-${sampled ? '01' : '00'}`],
      ]);
    }
  });

  test('of a later version is accepted', () => {
    for (const value of [`01-${traceId}-${parentId}-01`, `cc-${traceId}-${parentId}-01-what-else`])
      assert.equal(startWith(value).trace.parentId, parentId);
  });

  for (const value of [
    '',
    `ff-${traceId}-${parentId}-01`,
    `00-${zeros(32)}-${parentId}-01`,
    `00-${traceId}-${zeros(16)}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${traceId}-${parentId}`,
    `00-${traceId}-${parentId}-01-more`,
    `00-${traceId}x-${parentId}-01`,
    `00-${traceId}-${parentId}-zz`,
  ])
    test(`starts a new trace if it is invalid: ${value}`, () => {
      const { trace } = startWith(value);
      assert.equal(trace.parentId, undefined);
      assert.notEqual(trace.traceId, traceId);
      assert.match(trace.traceId, /^[0-9a-f]{32}$/);
    });

  test('starts a new trace if it occurs twice', () => {
    const one = `00-${traceId}-${parentId}-01`;
    assert.equal(startWith(one, one).trace.parentId, undefined);
  });
});

describe('the trace headers to the bank', () => {
  test('keep all other headers, and keep tracestate only if the trace of the caller is continued', () => {
    const fields: HeaderFields = [
      ['Accept', '*/*'],
      ['tracestate', 'vendor=1'],
    ];
    const known = startTrace([...fields, ['traceparent', `00-${traceId}-${parentId}-01`]], 0);
    assert.deepEqual(known.headers.slice(0, -1), fields);
    assert.deepEqual(startTrace(fields, 0).headers.slice(0, -1), [['Accept', '*/*']]);
  });

  test('sample the configured fraction of the requests without a decision of the caller', () => {
    const sampled = (part: number) =>
      Array.from({ length: 2_000 }, () => startTrace([], part)).filter(({ trace }) => trace.sampled).length;
    assert.deepEqual([sampled(0), sampled(1)], [0, 2_000]);
    const tenth = sampled(0.1);
    assert.ok(tenth > 100 && tenth < 320, `${tenth}`); // six standard deviations of 13 to either side
  });

  test('have new ids for every request', () => {
    const ids = Array.from({ length: 100 }, () => startTrace([], 1).trace).flatMap(
      ({ traceId: trace, spanId, upstreamSpanId }) => [trace, spanId, upstreamSpanId],
    );
    assert.equal(new Set(ids).size, ids.length);
  });
});
