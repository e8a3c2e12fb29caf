import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { connectRaw } from '../kit/raw.ts';
import { until, within } from '../kit/within.ts';
import { callOn, logLineOf, methods, startWithPayment } from './fault-contract.ts';

/**
 * The story: a TPP's own deadline passes, it hangs up, and its proxy's proxy closes everything behind it. A
 * payment that is torn down half-way may have been made or not, and nobody is left who knows.
 */
describe('a TPP that hangs up while its call is at the bank', { concurrency: true }, () => {
  for (const method of methods) {
    test(`does not disturb its ${method}: the bank is asked once, answers, and the log knows`, async (t) => {
      const line = await startWithPayment(t);
      const { bank, gateway } = line;
      const earlier = { requests: bank.requests.length, payments: bank.payments.length };
      bank.injectFault({ name: 'latency', ms: 150, strikes: 'before-effect' }, { times: 1 });
      const request = callOn(line, method);
      const hangUp = new AbortController();
      const reply = call(gateway.url, { ...request, signal: hangUp.signal });
      await bank.waitUntil(() => bank.requests.length === earlier.requests + 1);

      hangUp.abort();
      await assert.rejects(reply, { name: 'AbortError' });

      await until(4_000, 'the log tells the outcome', () =>
        gateway.logLines.some((text) => text.includes(request.requestId)),
      );
      const { message, status, servedFrom } = logLineOf(gateway, request);
      const proper = { GET: 200, POST: 201, DELETE: 202 }[method];
      assert.deepEqual(
        { message, status, servedFrom },
        { message: 'request', status: proper, servedFrom: 'bank' },
      );
      assert.equal(bank.requests.length - earlier.requests, 1);
      assert.equal(bank.payments.length - earlier.payments, method === 'POST' ? 1 : 0);

      const next = await within(4_000, 'the next answer', call(gateway.url, callOn(line, 'GET')));
      assert.equal(next.status, 200);
    });
  }

  test('leaves no trace at the bank if it was still sending', async (t) => {
    const line = await startWithPayment(t);
    const before = line.bank.requests.length;
    const request = callOn(line, 'POST');
    const connection = await connectRaw(line.gateway.port);
    connection.send(
      `POST ${request.path} HTTP/1.1\r\nHost: gateway\r\nX-Request-ID: ${request.requestId}\r\nContent-Length: 9999\r\n\r\n{"begun":`,
    );
    connection.destroy();

    await until(4_000, 'the log tells it', () =>
      line.gateway.logLines.some((text) => text.includes(request.requestId)),
    );
    assert.equal(logLineOf(line.gateway, request).message, 'request refused');
    const next = await within(4_000, 'the next answer', call(line.gateway.url, callOn(line, 'GET')));
    assert.equal(next.status, 200);
    assert.equal(line.bank.requests.length - before, 1, 'only the next call');
  });
});
