/** A TPP that hangs up while its call waits for a turn: nothing is sent for it, and others are not harmed. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requestText } from '../kit/attack.ts';
import { call } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw.ts';
import { newCall, transfers } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { methods } from './fault-contract.ts';

/** One call at a time. */
const narrow = {
  shaping: { maxConcurrent: 1, maxWait: { write: '20s', read: '10s', status: '8s' } },
};
const aPayment = `${transfers}/a-payment`;

/** A gateway whose one slot is taken until the returned function is called. */
async function startTaken(t: Parameters<typeof startLine>[0]) {
  const line = await startLine(t, narrow);
  line.bank.injectFault({ name: 'latency', ms: 2_500, strikes: 'before-effect' }, { times: 1 });
  const holder = call(line.gateway.url, newCall('GET', aPayment));
  await line.bank.waitUntil(() => line.bank.requests.length === 1);
  return { ...line, holder };
}

describe('a TPP that hangs up while its call waits', { concurrency: true }, () => {
  for (const method of methods) {
    test(`a ${method} is never sent, and the log says why`, async (t) => {
      const { bank, gateway, holder } = await startTaken(t);
      const one = newCall(method, method === 'POST' ? transfers : aPayment);
      const hangUp = new AbortController();
      const reply = call(gateway.url, { ...one, signal: hangUp.signal });
      const last = call(gateway.url, newCall('GET', `${aPayment}/authorisations`));
      await call(gateway.url, newCall('GET', '/')); // read behind the first
      hangUp.abort();
      await assert.rejects(reply);
      await until(4_000, 'the log tells it', () =>
        gateway.logLines.some((line) => line.includes(one.requestId) && line.includes('The caller left')),
      );
      await holder;
      assert.equal((await within(4_000, 'the call behind', last)).status, 404);
      assert.deepEqual(
        bank.requests.map(({ operation }) => operation),
        ['getPayment', 'listAuthorisations'],
      );
    });
  }

  test('only closes its side, and its turn comes soon: it gets its answer', async (t) => {
    const { bank, gateway } = await startLine(t, narrow);
    bank.injectFault({ name: 'latency', ms: 300, strikes: 'before-effect' });
    const holder = call(gateway.url, newCall('GET', aPayment));
    await bank.waitUntil(() => bank.requests.length === 1);
    await onConnection(gateway.port, async (connection) => {
      connection.send(requestText(`GET ${aPayment} HTTP/1.1`));
      connection.end();
      assert.equal((await connection.answer()).status, 404);
    });
    await holder;
  });

  test('does not take a shared status read with it', async (t) => {
    const { bank, gateway, holder } = await startTaken(t);
    const status = `${aPayment}/status`;
    const hangUp = new AbortController();
    const first = call(gateway.url, { ...newCall('GET', status), signal: hangUp.signal });
    await call(gateway.url, newCall('GET', '/')); // read behind the first
    const second = call(gateway.url, newCall('GET', status));
    await call(gateway.url, newCall('GET', '/'));
    hangUp.abort();
    await assert.rejects(first);
    await holder;
    assert.equal((await within(4_000, 'the second answer', second)).status, 404);
    assert.equal(bank.requests.length, 2, 'the holder, and one status read');
  });
});
