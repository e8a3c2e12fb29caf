import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { sendAtFixedRate } from '../../../bench/measure/fixed-rate.ts';
import { listen } from '../../kit/ports.ts';

const request = { method: 'GET', path: '/', headers: {} } as const;

describe('the fixed-rate load generator of the benchmark', () => {
  test('keeps sending while the server stalls, and measures each request from the time at which it was due', async (t) => {
    const stallMs = 300;
    let firstMs: number | undefined;
    const server = createServer((_, answer) => {
      firstMs ??= performance.now();
      const leftMs = Math.max(0, firstMs + stallMs - performance.now());
      setTimeout(() => answer.end(), leftMs);
    });
    t.after(() => server.close());
    const port = await listen(server);

    const load = await sendAtFixedRate(request, { port, perSecond: 200, seconds: 1 });

    assert.equal(load.requests, 200);
    assert.equal(load.errors, 0);
    // 60 of the 200 should have been sent in the 300 ms: a closed load would have sent one.
    assert.ok(load.p99Ms > stallMs * 0.9, `${load.p99Ms} ms`);
  });

  test('counts a status above 399 as an error', async (t) => {
    const server = createServer((_, answer) => answer.writeHead(503).end());
    t.after(() => server.close());
    const port = await listen(server);
    const load = await sendAtFixedRate(request, { port, perSecond: 20, seconds: 1 });
    assert.deepEqual([load.requests, load.errors], [0, 20]);
  });
});
