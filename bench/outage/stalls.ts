/** How many requests fail, and how long they take, when Redis stalls for a moment, by the timeout of its commands. */

import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { createRedisState } from '../../src/state/redis.ts';
import { call } from '../../test/kit/call.ts';
import { startGateway } from '../../test/kit/gateway.ts';
import { type Exchange, measureExchange, startLoad } from '../../test/kit/load.ts';
import { type RedisServer, startRedis } from '../../test/kit/redis.ts';
import { initiation, transfersPath } from '../../test/kit/request.ts';
import { startStubBank, statusResponse } from '../../test/kit/stub-bank.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { closedWith, type Measure, ms, type Row } from './measure.ts';

const stallsMs = [0, 20, 50, 100, 200, 500, 1_000];
const timeoutsMs = [50, 100, 250, 500];
/** Stalls of each length; their requests are counted together. */
const repetitions = 3;
const perSecond = 100;

/** 100 payments and 100 status reads per second of one instance, while Redis is frozen for a moment. */
export const measureStalls: Measure = async (life) => {
  const redis = await startRedis(life);
  const rows: Row[] = [];
  for (const timeoutMs of timeoutsMs) {
    const send = await startLoadedGateway(life, redis, timeoutMs);
    for (const stallMs of stallsMs)
      rows.push([`timeout ${timeoutMs} ms, stall ${stallMs} ms`, summaryOf(await send(stallMs)), '']);
  }
  return rows;
};

interface StallResult {
  readonly payments: readonly Exchange[];
  readonly reads: readonly Exchange[];
}

async function startLoadedGateway(life: TestScope, redis: RedisServer, timeoutMs: number) {
  const bank = await startStubBank(life, ({ method }) =>
    method === 'GET'
      ? statusResponse('RCVD')
      : { status: 201, body: JSON.stringify({ transactionStatus: 'RCVD', paymentId: randomUUID() }) },
  );
  const state = createRedisState(
    { kind: 'single', url: redis.url },
    `bench-${randomUUID()}:`,
    () => {},
    timeoutMs,
  );
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { redis: redis.url },
    shaping: { rate: '10000/s', burst: 10_000 },
  };
  const gateway = await startGateway(life, sections, state);
  const agent = closedWith(life, new Agent({ keepAlive: true }));
  const pay = () => measureExchange(initiation, (one) => call(gateway.url, one, agent));
  const read = (number: number) =>
    measureExchange({ method: 'GET', path: `${transfersPath}/payment-${number % 50}/status` }, (one) =>
      call(gateway.url, one, agent),
    );

  return async (stallMs: number): Promise<StallResult> => {
    const pace = { perSecond, maxInFlight: Infinity };
    const loads = [startLoad(life, pace, pay), startLoad(life, pace, read)];
    await setTimeout(500);
    for (let count = 0; count < repetitions; count++) {
      if (stallMs > 0) redis.freeze();
      await setTimeout(stallMs);
      redis.thaw();
      await setTimeout(700);
    }
    const [payments = [], reads = []] = await Promise.all(loads.map((load) => load.stop()));
    return { payments, reads };
  };
}

function summaryOf({ payments, reads }: StallResult): string {
  return `payments: ${failedOf(payments)}; reads: ${failedOf(reads)}`;
}

function failedOf(exchanges: readonly Exchange[]): string {
  const failed = exchanges.filter(({ came }) => came instanceof Error || came.status >= 400).length;
  const slowestMs = Math.max(...exchanges.map(({ tookMs }) => tookMs));
  return `${(failed / repetitions).toFixed(1)} failed, slowest ${ms(slowestMs)}`;
}
