import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { connectRaw } from '../kit/raw-connection.ts';
import { until, within } from '../kit/within.ts';
import { callOn, logLineOf, methods, startWithPayment } from './fault-contract.ts';

/** A TPP disconnects at its own deadline. A payment that was aborted with it would have an unknown outcome. */
describe('disconnect of a TPP', { concurrency: 8 }, () => {
  for (const method of methods) {
    test(`does not abort a ${method} that was sent to the bank, and the log shows its outcome`, async (t) => {
      const setup = await startWithPayment(t);
      const { bank, gateway } = setup;
      const earlier = { requests: bank.requests.length, payments: bank.payments.length };
      bank.injectFault({ name: 'latency', ms: 150, strikes: 'before-effect' }, { times: 1 });
      const request = callOn(setup, method);
      const disconnect = new AbortController();
      const reply = call(gateway.url, { ...request, signal: disconnect.signal });
      await bank.waitUntil(() => bank.requests.length === earlier.requests + 1);

      disconnect.abort();
      await assert.rejects(reply, { name: 'AbortError' });

      await until(4_000, 'the log shows the outcome', () =>
        gateway.logLines.some((text) => text.includes(request.requestId)),
      );
      const { message, status, servedFrom } = logLineOf(gateway, request);
      const expectedStatus = { GET: 200, POST: 201, DELETE: 202 }[method];
      assert.deepEqual(
        { message, status, servedFrom },
        { message: 'request', status: expectedStatus, servedFrom: 'bank' },
      );
      assert.equal(bank.requests.length - earlier.requests, 1);
      assert.equal(bank.payments.length - earlier.payments, method === 'POST' ? 1 : 0);

      const next = await within(4_000, 'the next answer', call(gateway.url, callOn(setup, 'GET')));
      assert.equal(next.status, 200);
    });
  }

  test('before the request is complete sends nothing to the bank', async (t) => {
    const setup = await startWithPayment(t);
    const before = setup.bank.requests.length;
    const request = callOn(setup, 'POST');
    const connection = await connectRaw(setup.gateway.port);
    connection.send(
      `POST ${request.path} HTTP/1.1\r\nHost: gateway\r\nX-Request-ID: ${request.requestId}\r\nContent-Length: 9999\r\n\r\n{"begun":`,
    );
    connection.destroy();

    await until(4_000, 'the log shows the request', () =>
      setup.gateway.logLines.some((text) => text.includes(request.requestId)),
    );
    assert.equal(logLineOf(setup.gateway, request).message, 'request refused');
    const next = await within(4_000, 'the next answer', call(setup.gateway.url, callOn(setup, 'GET')));
    assert.equal(next.status, 200);
    assert.equal(setup.bank.requests.length - before, 1, 'only the next call');
  });
});
