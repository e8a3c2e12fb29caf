import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requestText } from '../kit/attack.ts';
import { call } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { methods } from './fault-contract.ts';

/** One call at a time. */
const narrow = {
  shaping: { maxConcurrent: 1, maxWait: { write: '20s', read: '10s', status: '8s' } },
};
const aPayment = `${transfersPath}/a-payment`;

/** A gateway with a call to the bank that occupies its only concurrency slot for 2.5 s. */
async function startBusy(t: Parameters<typeof startGatewayWithBank>[0]) {
  const setup = await startGatewayWithBank(t, narrow);
  setup.bank.injectFault({ name: 'latency', ms: 2_500, strikes: 'before-effect' }, { times: 1 });
  const activeCall = call(setup.gateway.url, newCall('GET', aPayment));
  await setup.bank.waitUntil(() => setup.bank.requests.length === 1);
  return { ...setup, activeCall };
}

describe('disconnect of a TPP whose call is queued', { concurrency: 8 }, () => {
  for (const method of methods) {
    test(`drops a queued ${method}, and the log shows why`, async (t) => {
      const { bank, gateway, activeCall } = await startBusy(t);
      const queued = newCall(method, method === 'POST' ? transfersPath : aPayment);
      const disconnect = new AbortController();
      const reply = call(gateway.url, { ...queued, signal: disconnect.signal });
      const last = call(gateway.url, newCall('GET', `${aPayment}/authorisations`));
      await call(gateway.url, newCall('GET', '/')); // the gateway reads it after the first
      disconnect.abort();
      await assert.rejects(reply);
      await until(4_000, 'the log shows it', () =>
        gateway.logLines.some(
          (text) => text.includes(queued.requestId) && text.includes('The client disconnected'),
        ),
      );
      await activeCall;
      assert.equal((await within(4_000, 'the next call', last)).status, 404);
      assert.deepEqual(
        bank.requests.map(({ operation }) => operation),
        ['getPayment', 'listAuthorisations'],
      );
    });
  }

  test('that closes only its sending side still receives the response', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, narrow);
    bank.injectFault({ name: 'latency', ms: 300, strikes: 'before-effect' });
    const activeCall = call(gateway.url, newCall('GET', aPayment));
    await bank.waitUntil(() => bank.requests.length === 1);
    await onConnection(gateway.port, async (connection) => {
      connection.send(requestText(`GET ${aPayment} HTTP/1.1`));
      connection.end();
      assert.equal((await connection.answer()).status, 404);
    });
    await activeCall;
  });

  test('does not cancel a status read that is shared with another request', async (t) => {
    const { bank, gateway, activeCall } = await startBusy(t);
    const status = `${aPayment}/status`;
    const disconnect = new AbortController();
    const first = call(gateway.url, { ...newCall('GET', status), signal: disconnect.signal });
    await call(gateway.url, newCall('GET', '/')); // the gateway reads it after the first
    const second = call(gateway.url, newCall('GET', status));
    await call(gateway.url, newCall('GET', '/'));
    disconnect.abort();
    await assert.rejects(first);
    await activeCall;
    assert.equal((await within(4_000, 'the second answer', second)).status, 404);
    assert.equal(bank.requests.length, 2, 'the active call, and one status read');
  });
});
