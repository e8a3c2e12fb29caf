/** All instances together keep the rate that a bank allows, with and without Redis, and learn it from its 429 responses. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, type TestContext, test } from 'node:test';
import { arrivalsOf, excessMs } from '../kit/arrivals.ts';
import { call } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { type GatewayUnderTest, startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { measureExchange, startLoad } from '../kit/load.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const bucket = { perSecond: 50, burst: 50 };
const patient = '60s';

async function startThree(t: TestContext) {
  const redis = await startRedis(t);
  const way = redisStateFactory(redis.url, undefined, 250);
  const bank = await startBank(t);
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { postgres: await newMigratedPostgres(), redis: redis.url },
    deadlines: { read: '2min', status: '2min', write: '2min' },
    shaping: {
      rate: `${bucket.perSecond}/s`,
      burst: bucket.burst,
      expectedInstances: 3,
      maxWait: { write: patient, read: patient, status: patient },
    },
  };
  const gateways = [];
  for (const _ of [1, 2, 3]) gateways.push(await startGateway(t, sections, way()));
  return { redis, bank, gateways };
}

/** Sends that many reads at once, to the gateways in turn. @returns closes the connections of those that wait */
function offer(t: TestContext, gateways: readonly GatewayUnderTest[], count: number) {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const urls = gateways.map(({ url }) => url);
  for (let index = 0; index < count; index++) {
    call(urls[index % urls.length] ?? '', callOf.read, agent).catch(() => {});
  }
  return () => agent.destroy();
}

const isAlone = async ({ adminUrl }: GatewayUnderTest) =>
  (await call(adminUrl, { method: 'GET', path: '/metrics' })).text.includes('penstock_shaping_alone 1');

/** The rate that a gateway has learnt from the bank, in calls per second. */
async function learntRate({ adminUrl }: GatewayUnderTest): Promise<number> {
  const { text } = await call(adminUrl, { method: 'GET', path: '/metrics' });
  return Number(/^penstock_shaping_rate\{.*\} (\S+)$/m.exec(text)?.[1]);
}

const fault = { name: 'rate-limit', perSecond: 5, burst: 5, retryAfterSeconds: 1 } as const;

describe('the rate limit of a bank', {
  concurrency: 8,
  skip: skipWithoutRedisServer || skipWithoutPostgres,
}, () => {
  test('a gateway learns from 429 responses, refuses reads instead of payments, and says when to try again', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { shaping: { rate: '50/s', burst: 50 } });
    bank.injectFault(fault);
    const payments = startLoad(t, { perSecond: 1 }, () =>
      measureExchange(initiation, (one) => call(gateway.url, one)),
    );
    const reads = startLoad(t, { perSecond: 15 }, () =>
      measureExchange(callOf.read, (one) => call(gateway.url, one)),
    );
    await until(60_000, 'the rate is learnt', async () => (await learntRate(gateway)) <= 6);
    await reads.hasSentMore(60);

    for (const { came } of await payments.stop()) {
      assert.ok(!(came instanceof Error));
      const refusal = `${came.status} ${came.header('Penstock-Error')}`;
      assert.ok([201, 429].includes(came.status), `the gateway refuses no payment: ${refusal}`);
    }
    const refused = (await reads.stop()).flatMap(({ came }) =>
      came instanceof Error || came.status !== 503 ? [] : [came],
    );
    assert.ok(refused.length > 0);
    for (const { header } of refused) assert.match(header('Retry-After') ?? '', /^\d+$/);
  });

  test('three instances that share 50 calls a second never send more than a bucket of 50 allows', {
    skip: skipWithoutRedisServer,
  }, async (t) => {
    const { bank, gateways } = await startThree(t);
    const stalls = monitorEventLoopDelay();
    stalls.enable();
    const leave = offer(t, gateways, 1_000);
    await bank.waitUntil(() => bank.requests.length >= 300, 60_000);
    leave();
    const longestStallMs = stalls.max / 1e6; // calls that it held up reach the bank closer to the later ones
    const excess = excessMs(arrivalsOf(bank.requests), bucket);
    assert.ok(excess < longestStallMs, `${excess} ms too close, the longest stall took ${longestStallMs} ms`);
  });

  test('three instances together keep the rate when Redis freezes', {
    skip: skipWithoutRedisServer,
  }, async (t) => {
    const { redis, bank, gateways } = await startThree(t);
    await Promise.all(gateways.map(({ url }) => call(url, callOf.read)));
    redis.freeze();
    t.after(redis.thaw);
    const leave = offer(t, gateways, 500);
    await until(20_000, 'each instance limits the rate by itself', async () =>
      (await Promise.all(gateways.map(isAlone))).every(Boolean),
    );
    const before = bank.requests.length;
    await bank.waitUntil(() => bank.requests.length >= before + 150, 60_000);
    leave();
    redis.thaw();
    assert.ok(excessMs(arrivalsOf(bank.requests).slice(before), bucket) < 0);
  });
});
