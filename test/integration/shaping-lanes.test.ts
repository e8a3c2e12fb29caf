/** Payments go first, and no tenant's calls push another's back. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { type GatewayUnderTest, startBank, startGateway, startLine } from '../kit/gateway.ts';
import { exchange, quantile, startLoad } from '../kit/load.ts';
import { percentile } from '../kit/percentile.ts';
import { initiation, transfers } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** The share of calls of a lane that waited no longer than a bound of the histogram, and how many there were. */
async function waitsOf({ adminUrl }: GatewayUnderTest, lane: string, boundSeconds: number) {
  const { text } = await call(adminUrl, { method: 'GET', path: '/metrics' });
  const labels = `environment="sandbox",lane="${lane}"`;
  const sample = (rest: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`penstock_queue_wait_seconds_${rest}`))
        ?.split(' ')[1],
    );
  const count = sample(`count{${labels}}`);
  return { count, part: sample(`bucket{le="${boundSeconds}",${labels}}`) / count };
}

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
  test('ten times the rate, one in twenty a payment: payments hardly wait', async (t) => {
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
    const load = startLoad({ perSecond: 10 * perSecond, forMs: 6_000 }, (number) =>
      ask(number % 20 === 0 ? initiation : read(number)),
    );
    const done = await load.ended;

    const { count, part } = await waitsOf(gateway, 'write', 0.1);
    const payments = done.filter(({ call: one }) => one.method === 'POST');
    const slowest = quantile(payments, 0.99);
    const kinds = done
      .filter(({ call: one }) => one.method === 'GET')
      .map(({ came }) =>
        came instanceof Error
          ? came.message
          : (came.header('Penstock-Error') ??
            `${came.status} ${/fwd=stale|hit/.exec(came.header('Cache-Status') ?? '') ?? ''}`),
      );
    t.diagnostic(
      `${(part * 100).toFixed(1)} % of ${count} payments waited 100 ms at most; p99 of the whole call ${slowest.toFixed(0)} ms`,
    );
    t.diagnostic(
      `statuses: ${JSON.stringify(Object.fromEntries([...new Set(kinds)].map((kind) => [kind, kinds.filter((one) => one === kind).length])))}`,
    );
    assert.ok(part >= 0.99, `${part} of ${count}`);
    for (const { came } of done) {
      assert.ok(!(came instanceof Error));
      if (came.status !== 503) continue;
      assert.match(came.header('Penstock-Error') ?? '', /^QUEUE_(FULL|TIMEOUT)$/);
      assert.match(came.header('Retry-After') ?? '', /^\d+$/);
    }
    assert.ok(payments.every(({ came }) => !(came instanceof Error) && came.status === 201));
    assert.ok(bank.requests.length < perSecond * (6 + 1 + 2));
  });

  test("one tenant's flood of payments does not push another's back", async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const shaping = { rate: '20/s', burst: 2, maxWait: { write: '30s' } };
    const gateway = await startGateway(t, { environments, clients: clientSettings(), shaping });
    const by = (client: 'shop' | 'rival'): Call => ({
      ...initiation,
      headers: [...initiation.headers, ['X-API-Key', apiKeyOf(client)]],
    });
    const flood = agentOf(t);
    const flooding = Array.from({ length: 200 }, () =>
      exchange(by('rival'), (one) => call(gateway.url, one, flood)),
    );
    await until(5_000, 'the flood is here', async () => bank.requests.length >= 10);
    const agent = agentOf(t);
    const load = startLoad({ perSecond: 5, forMs: 3_000 }, () =>
      exchange(by('shop'), (one) => call(gateway.url, one, agent)),
    );
    const times = (await load.ended).map(({ tookMs }) => tookMs);
    const waiting = bank.requests.length;
    flood.destroy();
    const rivals = (await Promise.all(flooding)).flatMap(({ came, tookMs }) =>
      came instanceof Error ? [] : [tookMs],
    );
    const [median, slowest] = [percentile(times, 0.5), percentile(times, 1)];
    t.diagnostic(
      `${times.length} payments beside 200: ${median.toFixed(0)} ms in the middle, ${slowest.toFixed(0)} ms at most; of the flood ${rivals.length} came through, in up to ${Math.max(...rivals).toFixed(0)} ms`,
    );
    assert.ok(waiting < 200, 'the flood was still there');
    assert.ok(slowest < 1_500, `${slowest} ms`); // in one line by arrival it would be eight seconds
  });
});
