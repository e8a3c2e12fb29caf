import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Sections, shortDeadlines } from '../kit/gateway.ts';
import { newCall } from '../kit/request.ts';
import { within } from '../kit/within.ts';
import { callOn, logLineOf, methods, startWithPayment } from './fault-contract.ts';

/** One connection to the bank; a status read may occupy it longer than any other call may wait. */
const narrow: Sections = {
  statusCache: { enabled: false }, // it would repeat the read that occupies the connection, because a DELETE has overtaken it
  upstream: { maxSockets: 1 },
  ...shortDeadlines,
  deadlines: { ...shortDeadlines.deadlines, status: '60s' },
  shaping: { maxConcurrent: 1, maxWait: { write: '100ms', read: '100ms', status: '100ms' } },
};

describe('connection pool without a free connection', { concurrency: 8 }, () => {
  for (const method of methods) {
    test(`refuses a ${method} with QUEUE_TIMEOUT at its deadline, without sending it`, async (t) => {
      const setup = await startWithPayment(t, narrow);
      const { bank, gateway, paymentPath } = setup;
      const before = bank.requests.length;
      bank.injectFault({ name: 'latency', ms: 600_000 }, { operation: 'getPaymentStatus', times: 1 });
      const statusRead = call(gateway.url, newCall('GET', `${paymentPath}/status`));
      await bank.waitUntil(() => bank.requests.length === before + 1);

      const request = callOn(setup, method);
      const reply = await within(4_000, 'an answer', call(gateway.url, request));
      assert.equal(reply.status, 503);
      assert.equal(reply.header('penstock-error'), 'QUEUE_TIMEOUT');
      assert.match(reply.header('proxy-status') ?? '', /^penstock; error=connection_limit_reached;/);
      assert.equal(reply.header('retry-after'), '1');
      assert.match(reply.text, /nothing was sent/);
      const { level, error, status } = logLineOf(gateway, request);
      assert.deepEqual({ level, error, status }, { level: 'warn', error: 'QUEUE_TIMEOUT', status: 503 });

      bank.endDelays();
      assert.equal((await within(4_000, 'the first answer', statusRead)).status, 200);
      const next = await within(4_000, 'the next answer', call(gateway.url, callOn(setup, 'GET')));
      assert.equal(next.status, 200);
      assert.equal(bank.requests.length - before, 2, 'the status read and the next call');
    });
  }

  test('closes the connections of payments past their deadline for calls that are in time', async (t) => {
    const setup = await startWithPayment(t, {
      upstream: { maxSockets: 2 },
      deadlines: { ...shortDeadlines.deadlines, status: '20s', read: '20s' },
      shaping: { maxConcurrent: 2, maxWait: { write: '1500ms', read: '10s', status: '10s' } },
      idempotency: { ...shortDeadlines.idempotency, lateAnswer: '3s' },
    });
    setup.bank.injectFault({ name: 'never-answer' }, { operation: 'initiatePayment' });
    const initiate = () => call(setup.gateway.url, callOn(setup, 'POST'));
    for (const { status } of await Promise.all([initiate(), initiate()])) assert.equal(status, 504);
    const reads = [1, 2, 3].map(() =>
      within(2_000, 'an answer', call(setup.gateway.url, callOn(setup, 'GET'))),
    );
    for (const { status } of await Promise.all(reads)) assert.equal(status, 200);
    assert.ok(setup.bank.connections <= 5, `${setup.bank.connections} connections`);
  });

  test('lets further calls wait and opens no more than maxSockets connections', async (t) => {
    const setup = await startWithPayment(t, {
      upstream: { maxSockets: 2 },
      deadlines: { read: '20s' },
      shaping: { maxConcurrent: 2, maxWait: { read: '15s' } },
    });
    setup.bank.injectFault({ name: 'latency', ms: 5 });
    const replies = await Promise.all(
      Array.from({ length: 30 }, () =>
        within(8_000, 'an answer', call(setup.gateway.url, callOn(setup, 'GET'))),
      ),
    );

    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
    assert.ok(setup.bank.connections <= 2);
  });
});
