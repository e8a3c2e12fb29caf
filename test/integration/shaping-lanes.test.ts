/** The bank's capacity goes to payments first, and fairly to tenants. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { arrivalsOf, excessMs } from '../kit/arrivals.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const agentOf = (t: TestContext) => {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  return agent;
};

test('a call with maxWait 0 is sent if a permit is available, and refused otherwise', async (t) => {
  const maxWait = { write: '0ms', read: '0ms', status: '0ms' };
  const { gateway } = await startGatewayWithBank(t, { shaping: { rate: '1/min', burst: 4, maxWait } });
  for (const [lane, status] of [
    ['read', 404],
    ['status', 404],
    ['write', 201],
    ['write', 201],
    ['write', 503],
  ] as const) {
    const { headers = [], ...rest } = callOf[lane];
    const otherHeaders = headers.filter(([name]) => name !== 'X-Request-ID');
    const reply = await call(gateway.url, {
      ...rest,
      headers: [...otherHeaders, ['X-Request-ID', randomUUID()]],
    });
    assert.equal(reply.status, status, reply.text);
  }
});

describe('gateway with more calls than the rate of the bank', { concurrency: true }, () => {
  test('sends every payment, refuses reads, and does not exceed the rate', async (t) => {
    const perSecond = 20;
    const { bank, gateway } = await startGatewayWithBank(t, {
      shaping: { rate: `${perSecond}/s`, burst: perSecond },
    });
    const ids: string[] = [];
    for (let count = 0; count < 5; count++)
      ids.push(String(jsonOf(await call(gateway.url, initiation)).paymentId));
    const agent = agentOf(t);
    const send = (request: Call) => measureExchange(request, (sent) => call(gateway.url, sent, agent));
    const read = (number: number): Call => {
      const paymentId = number % 4 === 0 ? (ids[number % ids.length] ?? '') : `payment-${number}`;
      return { method: 'GET', path: `${transfersPath}/${paymentId}/status` };
    };
    const load = startLoad(t, { perSecond: 10 * perSecond, maxInFlight: Infinity }, (number) =>
      send(number % 20 === 0 ? initiation : read(number)),
    );
    await load.hasSent(600);

    for (const { call: request, came } of await load.stop()) {
      assert.ok(!(came instanceof Error));
      if (request.method === 'POST') assert.equal(came.status, 201);
      if (came.status !== 503) continue;
      assert.match(came.header('Penstock-Error') ?? '', /^QUEUE_(FULL|TIMEOUT)$/);
      assert.match(came.header('Retry-After') ?? '', /^\d+$/);
    }
    // A stall of this process, in which the bank runs as well, makes calls arrive together that were sent in time.
    assert.ok(excessMs(arrivalsOf(bank.requests), { perSecond, burst: 3 * perSecond }) < 0);
  });

  test('sends the payments of one tenant during a flood of payments of another', async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const shaping = { rate: '10/s', burst: 2, maxWait: { write: '30s' } }; // the flood takes 20 s
    const gateway = await startGateway(t, { environments, clients: clientSettings(), shaping });
    const by = (client: 'shop' | 'rival'): Call => ({
      ...initiation,
      headers: [...initiation.headers, ['X-API-Key', apiKeyOf(client)]],
    });
    const floodAgent = agentOf(t);
    for (let count = 0; count < 200; count++)
      void measureExchange(by('rival'), (sent) => call(gateway.url, sent, floodAgent));
    await until(5_000, 'the flood has begun', async () => bank.requests.length >= 10);
    const agent = agentOf(t);
    const load = startLoad(t, { perSecond: 3 }, () =>
      measureExchange(by('shop'), (sent) => call(gateway.url, sent, agent)),
    );
    await load.hasSent(15);
    assert.deepEqual(failuresIn(await load.stop()), {});
    assert.ok(bank.requests.length < 200, 'the bank has not received the whole flood yet');
  });
});
