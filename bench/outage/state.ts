/** What an outage of Redis costs. */

import { callAdminApi, switchEnvironment } from '../../test/kit/admin-api.ts';
import { type Call, callOnce } from '../../test/kit/call.ts';
import { type Instance, startFleet } from '../../test/kit/fleet.ts';
import { startSingleRedis } from '../../test/kit/fleet-redis.ts';
import { startGateway } from '../../test/kit/gateway.ts';
import { type Exchange, measureExchange, startLoad } from '../../test/kit/load.ts';
import { parsePrometheus } from '../../test/kit/prometheus.ts';
import { type RedisServer, startRedis } from '../../test/kit/redis.ts';
import { initiation, transfersPath } from '../../test/kit/request.ts';
import { startStubBank, statusResponse } from '../../test/kit/stub-bank.ts';
import { startTcpProxy } from '../../test/kit/tcp-proxy.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { until } from '../../test/kit/within.ts';
import { type Measure, ms, type Row, spreadOf, timeOf, timesOf } from './measure.ts';

const statusOf = (id: string): Call => ({ method: 'GET', path: `${transfersPath}/${id}/status` });

const outages: Readonly<
  Record<string, (redis: RedisServer) => readonly [begin: () => unknown, end: () => unknown]>
> = {
  killed: (redis) => [redis.kill, redis.restart],
  frozen: (redis) => [redis.freeze, redis.thaw],
};

/** Reads of known payments before and during an outage, refusals of new ones, and the recovery; 2 s of outage each. */
export const measureFleet: Measure = async (life) => {
  const rows: Row[] = [];
  for (const [how, outage] of Object.entries(outages)) {
    const redis = await startSingleRedis(life, ['--appendonly', 'yes', '--appendfsync', 'always']);
    const { one, other } = await startFleet(life, redis);
    const [begin, end] = outage(redis);
    const instances = [one, other];
    const ids = await Promise.all(Array.from({ length: 50 }, () => one.pay('shop')));
    for (const instance of instances) await Promise.all(ids.map((id) => instance.ask('shop', statusOf(id))));

    const load = startLoad(life, { perSecond: 200, maxInFlight: Infinity }, (number) =>
      measureExchange(statusOf(ids[number % ids.length] ?? ''), (read) =>
        (number % 2 === 0 ? one : other).ask('shop', read),
      ),
    );
    await load.hasSent(400);
    await begin();
    const beganAtMs = performance.now();
    const refusals: Exchange[] = [];
    while (performance.now() < beganAtMs + 2_000)
      refusals.push(await measureExchange(initiation, (payment) => one.ask('shop', payment)));
    const endedAtMs = performance.now();
    await end();
    const recoveryMs = await timeOf(Promise.all(instances.map(takesPayments)));

    const reads = await load.stop();
    const tookMs = (exchanges: readonly Exchange[]) => exchanges.map((one) => one.tookMs);
    const before = reads.filter(({ sentAtMs }) => sentAtMs < beganAtMs);
    const readsDuringOutage = reads.filter(({ sentAtMs }) => sentAtMs > beganAtMs && sentAtMs < endedAtMs);
    rows.push(
      [`${how}: status reads before`, spreadOf(tookMs(before), 0.99), ''],
      [
        `${how}: status reads during the outage`,
        spreadOf(tookMs(readsDuringOutage), 0.99),
        how === 'killed' ? 'p99 at most 50 ms more' : 'at most 250 ms a command',
      ],
      [
        `${how}: ${refusals.length} refusals of payments`,
        spreadOf(tookMs(refusals), 0.95),
        how === 'killed' ? 'p95 below 50 ms' : 'at most 250 ms a command',
      ],
      [`${how}: until both instances take payments again`, ms(recoveryMs), '2 s'],
    );
  }
  return rows;
};

const takesPayments = (instance: Instance) =>
  until(30_000, 'it takes payments', async () => (await instance.ask('shop', initiation)).status === 201);

/** With one environment and one tenant, every status read is answered by the bank. */
export const measureStatusReads: Measure = async (life) => {
  const harms: Readonly<Record<string, (redis: RedisServer) => unknown>> = {
    killed: (redis) => redis.kill(),
    frozen: (redis) => redis.freeze(),
    full: (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
  };
  const rows: Row[] = [];
  for (const [how, harm] of Object.entries(harms)) {
    const redis = await startRedis(life);
    const read = await startReader(life, redis.url);
    const before = await timesOf(50, read);
    await harm(redis);
    const during = await timesOf(100, (number) => read(number % 7));
    rows.push(
      [`${how}: before`, spreadOf(before, 0.95), ''],
      [`${how}: during`, spreadOf(during, 0.95), '60 ms more'],
    );
  }
  const proxy = await startTcpProxy(life, (await startRedis(life)).port);
  const read = await startReader(life, `redis://127.0.0.1:${proxy.port}`);
  const before = await timesOf(50, read);
  proxy.delayBy(25);
  const during = await timesOf(50, (number) => read(100 + number));
  rows.push(
    ['25 ms of latency: before', spreadOf(before, 0.95), ''],
    ['25 ms of latency: during, never cached', spreadOf(during, 0.95), '60 ms more'],
  );
  return rows;
};

async function startReader(life: TestScope, redisUrl: string) {
  const bank = await startStubBank(life, () => statusResponse('RCVD'));
  const gateway = await startGateway(life, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { redis: redisUrl },
  });
  return (number: number) => callOnce(gateway.url, statusOf(`payment-${number}`));
}

/** How soon the other instance knows of a switch, with Redis and without. */
export const measureSwitch: Measure = async (life) => {
  const redis = await startSingleRedis(life);
  const { one, other } = await startFleet(life, redis);
  const followed = async (environment: string) => {
    await switchEnvironment(one, environment);
    return timeOf(until(20_000, 'the other instance follows', () => knows(other, environment)));
  };
  const withRedis = await followed('production');
  redis.freeze();
  const without = await followed('sandbox');
  return [
    ['until the other instance knows of the switch', ms(withRedis), '100 ms'],
    ['the same while Redis is frozen', ms(without), '1 s'],
  ];
};

async function knows(instance: Instance, environment: string): Promise<boolean> {
  const metrics = parsePrometheus((await callAdminApi(instance, 'GET', '/metrics')).text);
  const samples = metrics.get('penstock_active_environment')?.samples ?? [];
  return samples.some(({ labels, value }) => labels.environment === environment && value === 1);
}
