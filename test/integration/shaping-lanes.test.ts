/** Payments go first, and no tenant's calls push another's back. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { arrivalsOf, excessMs } from '../kit/arrivals.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { startBank, startGateway, startLine } from '../kit/gateway.ts';
import { exchange, failuresIn, startLoad } from '../kit/load.ts';
import { initiation, transfers } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const agentOf = (t: TestContext) => {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  return agent;
};

test('who may not wait at all is sent if there is a turn, and refused if there is none', async (t) => {
  const maxWait = { write: '0ms', read: '0ms', status: '0ms' };
  const { gateway } = await startLine(t, { shaping: { rate: '1/min', burst: 4, maxWait } });
  for (const [lane, status] of [
    ['read', 404],
    ['status', 404],
    ['write', 201],
    ['write', 201],
    ['write', 503],
  ] as const) {
    const { headers = [], ...rest } = callOf[lane];
    const others = headers.filter(([name]) => name !== 'X-Request-ID');
    const reply = await call(gateway.url, { ...rest, headers: [...others, ['X-Request-ID', randomUUID()]] });
    assert.equal(reply.status, status, reply.text);
  }
});

describe('when more is offered than the bank allows', { concurrency: true }, () => {
  test('reads are refused, every payment is sent, and the bank gets no more than its rate', async (t) => {
    const perSecond = 20;
    const { bank, gateway } = await startLine(t, { shaping: { rate: `${perSecond}/s`, burst: perSecond } });
    const ids: string[] = [];
    for (let count = 0; count < 5; count++)
      ids.push(String(jsonOf(await call(gateway.url, initiation)).paymentId));
    const agent = agentOf(t);
    const ask = (one: Call) => exchange(one, (again) => call(gateway.url, again, agent));
    const read = (number: number): Call => {
      const known = number % 4 === 0 ? (ids[number % ids.length] ?? '') : `payment-${number}`;
      return { method: 'GET', path: `${transfers}/${known}/status` };
    };
    const load = startLoad(t, { perSecond: 10 * perSecond, maxInFlight: Infinity }, (number) =>
      ask(number % 20 === 0 ? initiation : read(number)),
    );
    await load.hasSent(600);

    for (const { call: one, came } of await load.stop()) {
      assert.ok(!(came instanceof Error));
      if (one.method === 'POST') assert.equal(came.status, 201);
      if (came.status !== 503) continue;
      assert.match(came.header('Penstock-Error') ?? '', /^(QUEUE_(FULL|TIMEOUT)|OVERLOADED)$/);
      assert.match(came.header('Retry-After') ?? '', /^\d+$/);
    }
    // Calls that were sent in time arrive together when this process, in which the bank runs as well, was held up.
    assert.ok(excessMs(arrivalsOf(bank.requests), { perSecond, burst: 3 * perSecond }) < 0);
  });

  test("one tenant's payments do not wait until another tenant's flood of payments is over", async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const shaping = { rate: '20/s', burst: 2, maxWait: { write: '30s' } };
    const gateway = await startGateway(t, { environments, clients: clientSettings(), shaping });
    const by = (client: 'shop' | 'rival'): Call => ({
      ...initiation,
      headers: [...initiation.headers, ['X-API-Key', apiKeyOf(client)]],
    });
    const flood = agentOf(t);
    for (let count = 0; count < 200; count++)
      void exchange(by('rival'), (one) => call(gateway.url, one, flood));
    await until(5_000, 'the flood is here', async () => bank.requests.length >= 10);
    const agent = agentOf(t);
    const load = startLoad(t, { perSecond: 5 }, () =>
      exchange(by('shop'), (one) => call(gateway.url, one, agent)),
    );
    await load.hasSent(15);
    assert.deepEqual(failuresIn(await load.stop()), {});
    assert.ok(bank.requests.length < 200, 'the bank has not got the whole flood yet');
  });
});
