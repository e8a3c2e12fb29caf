/** How fast requests are refused while the bank fails, and how well its rate is kept. */

import { Agent } from 'node:http';
import { arrivalsOf, excessMs, ratesOver } from '../../test/kit/arrivals.ts';
import { callOnce } from '../../test/kit/call.ts';
import { ask, callOf, circuitOf } from '../../test/kit/circuits.ts';
import { startBank, startGateway, startGatewayWithBank } from '../../test/kit/gateway.ts';
import { type Exchange, measureExchange, startLoad } from '../../test/kit/load.ts';
import { redisStateFactory, startRedis } from '../../test/kit/redis.ts';
import { initiation } from '../../test/kit/request.ts';
import { until } from '../../test/kit/within.ts';
import { percentile } from '../measure/statistics.ts';
import { closedWith, type Measure, ms, spreadOf, timesOf } from './measure.ts';

/** Refusals on one connection, while the bank answers 503. */
export const measureCircuit: Measure = async (life) => {
  const sections = { circuit: { minimumCalls: 5, openFor: '1min' }, statusCache: { enabled: false } };
  const { bank, gateway } = await startGatewayWithBank(life, sections);
  bank.injectFault({ name: 'status', status: 503 });
  await until(20_000, 'the circuit is open', async () => {
    await ask(gateway, 'read');
    return (await circuitOf(gateway, 'read')).state === 'open';
  });
  const agent = closedWith(life, new Agent({ keepAlive: true }));
  const times = await timesOf(500, () => ask(gateway, 'read', agent));
  return [['a refusal', spreadOf(times, 0.95), 'p95 below 5 ms']];
};

const bucket = { perSecond: 50, burst: 50 };

/** 1,000 reads offered at once to three instances: the rate at the bank over 15 s. */
export const measureSharedRate: Measure = async (life) => {
  const redis = await startRedis(life);
  const state = redisStateFactory(redis.url);
  const bank = await startBank(life);
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { redis: redis.url },
    deadlines: { read: '2min', status: '2min', write: '2min' },
    shaping: {
      rate: `${bucket.perSecond}/s`,
      burst: bucket.burst,
      expectedInstances: 3,
      maxWait: { write: '60s', read: '60s', status: '60s' },
    },
  };
  const gateways = [];
  for (const _ of [1, 2, 3]) gateways.push(await startGateway(life, sections, state()));
  const agent = closedWith(life, new Agent({ keepAlive: true }));
  for (let number = 0; number < 1_000; number++)
    callOnce(gateways[number % 3]?.url ?? '', callOf.read, agent).catch(() => {});
  const offeredAtMs = performance.now();
  await bank.waitUntil(() => bank.requests.length >= 850, 60_000);
  agent.destroy();

  const arrivals = arrivalsOf(bank.requests);
  const afterBurst = arrivals.filter((atMs) => atMs > offeredAtMs + 2_000);
  const [low, high] = ratesOver(5_000, afterBurst);
  const seconds = ((afterBurst.at(-1) ?? 0) - (afterBurst[0] ?? 0)) / 1_000;
  return [
    ['calls per second', ((afterBurst.length - 1) / seconds).toFixed(2), '49 to 51'],
    ['calls per second over any 5 s', `${low} to ${high}`, '49 to 51'],
    ['calls that came too early for a bucket of 50', ms(Math.max(0, excessMs(arrivals, bucket))), '0 ms'],
  ];
};

const learningMs = 30_000;
const measuredMs = 12_000;
const pauseMs = 3_000;

/** One payment and 15 reads per second, for 42 s, to a bank that asks for a pause of 3 s with each 429. */
export const measureLearntRate: Measure = async (life) => {
  const { bank, gateway } = await startGatewayWithBank(life, { shaping: { rate: '50/s', burst: 50 } });
  bank.injectFault({ name: 'rate-limit', perSecond: 5, burst: 5, retryAfterSeconds: pauseMs / 1_000 });
  const forMs = learningMs + measuredMs;
  const beganAtMs = performance.now();
  const [payments, reads] = await Promise.all([
    startLoad(life, { perSecond: 1, forMs }, () =>
      measureExchange(initiation, (one) => callOnce(gateway.url, one)),
    ).ended,
    startLoad(life, { perSecond: 15, forMs, maxInFlight: Infinity }, () =>
      measureExchange(callOf.read, (one) => callOnce(gateway.url, one)),
    ).ended,
  ]);

  const [fromMs, toMs] = [beganAtMs + learningMs, beganAtMs + forMs];
  const settled = bank.requests.filter(({ arrivedAtMs }) => arrivedAtMs > fromMs && arrivedAtMs <= toMs);
  const answered = settled.filter(({ fault }) => fault !== 'rate-limit').length;
  // While a pause lasts, nothing is sent, and there is no rate.
  const pausedMs = bank.requests
    .filter(({ fault }) => fault === 'rate-limit')
    .reduce((sum, { arrivedAtMs: atMs }) => {
      return sum + Math.max(0, Math.min(atMs + pauseMs, toMs) - Math.max(atMs, fromMs));
    }, 0);
  const late = payments.filter(({ sentAtMs }) => sentAtMs > fromMs).map(({ tookMs }) => tookMs);
  return [
    [
      'calls per second, except for pauses',
      ((answered * 1_000) / (measuredMs - pausedMs)).toFixed(2),
      '4 to 5',
    ],
    ['429 responses in the last 12 s', String(settled.length - answered), ''],
    ['the slowest payment in the last 12 s', ms(percentile(late, 1)), '5 s'],
    ['statuses of the payments', statusesOf(payments), '201, or 429 of the bank'],
    ['statuses of the reads', statusesOf(reads), ''],
  ];
};

/** How often each status came, such as `201: 42`. */
function statusesOf(exchanges: readonly Exchange[]): string {
  const statuses = exchanges.map(({ came }) => (came instanceof Error ? came.message : String(came.status)));
  const counted = [...new Set(statuses)].map((one) => [
    one,
    statuses.filter((other) => other === one).length,
  ]);
  return counted.map(([status, times]) => `${status}: ${times}`).join(', ');
}
