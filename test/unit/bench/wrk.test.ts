import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseWrk } from '../../../bench/measure/wrk.ts';

const output = `Running 4s test @ http://127.0.0.1:9000/
  1 threads and 32 connections
Requests/sec:  25000.00

{"requests":100500,"microseconds":4020000,"p50":1250,"p99":3400,"failed":3}
`;

describe('the wrk output parser of the benchmark', () => {
  test('reads requests, seconds, milliseconds and failures', () => {
    const load = { requests: 100_500, seconds: 4.02, p50Ms: 1.25, p99Ms: 3.4, errors: 3 };
    assert.deepEqual(parseWrk(output), load);
  });

  test('rejects the output of an aborted run', () => {
    assert.throws(() => parseWrk('unable to connect to 127.0.0.1:9000'), /unable to connect/);
  });
});
