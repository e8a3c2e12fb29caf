/**
 * `npm run bench:notifications`: waiting reads and event streams on several instances: what they cost the bank and the payments, and
 * how soon a change reaches all of them.
 */

import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { call } from '../test/kit/call.ts';
import { callInThread } from '../test/kit/call-in-thread.ts';
import { type GatewayProcess, startGatewayProcess } from '../test/kit/gateway-process.ts';
import { startPostgres } from '../test/kit/postgres.ts';
import { startRedis } from '../test/kit/redis.ts';
import { initiation, transfersPath } from '../test/kit/request.ts';
import { statusListenersOf } from '../test/kit/status-listeners.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { cpuMsOf, memoryMiB } from './measure/proc.ts';
import { median, percentile } from './measure/statistics.ts';
import { type ChangingBank, startChangingBank } from './notifications/changing-bank.ts';
import { createListeners, type Target } from './notifications/listeners.ts';
import { type PaymentDelays, payAtSteadyRate } from './notifications/payments.ts';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '3' },
    tenants: { type: 'string', default: '10' },
    payments: { type: 'string', default: '100' },
    waits: { type: 'string', default: '10000' },
    streams: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '15' },
    rounds: { type: 'string', default: '5' },
    'without-redis': { type: 'boolean', default: false },
  },
});
const [instances, tenants, payments, waits, streams, seconds, rounds] = [
  Number(values.instances),
  Number(values.tenants),
  Number(values.payments),
  Number(values.waits),
  Number(values.streams),
  Number(values.seconds),
  Number(values.rounds),
];

/** Listeners that are started per second. */
const startRate = 500;
/** Payments that change per second. */
const changeRate = 5;
/** Payments that are initiated per second while the delays of payments are measured. */
const paymentRate = 50;

await withCleanup(async (life) => {
  const bank = await startChangingBank(life);
  const fleet = await startGateways(life, bank);
  await createPayments(fleet.gateways);
  const measured: Round[] = [];
  while (measured.length < rounds) {
    measured.push(await measureRound(fleet, bank));
    console.error(JSON.stringify(measured.at(-1)));
  }
  console.log(formatTable(['medians', 'measured'], rowsOf(measured)));
});

type Round = Awaited<ReturnType<typeof measureRound>>;

/** Without listeners; with listeners while nothing changes; with listeners while payments change. */
async function measureRound(fleet: Fleet, bank: ChangingBank) {
  const rssBefore = rssOf(fleet);
  const without = await pay(fleet);
  const delays: number[] = [];
  const scope = createScope();
  const listeners = createListeners(scope, (number) => {
    const shownAtMs = bank.firstShownMs(number);
    if (shownAtMs !== undefined) delays.push(performance.now() - shownAtMs);
  });
  for (let count = 0; count < waits + streams; count++) {
    const target = targetOf(fleet.gateways, count);
    if (count < waits) listeners.wait(target);
    else listeners.stream(target);
    if (count % (startRate / 10) === 0) await setTimeout(100);
  }
  const open = await untilOpen(fleet.gateways, waits + streams);
  const rss = rssOf(fleet);

  const before = costsOf(fleet, bank);
  await setTimeout(seconds * 1_000);
  const after = costsOf(fleet, bank);
  const elapsed = (after.atMs - before.atMs) / 1_000;
  const beside = await pay(fleet);

  delays.length = 0;
  const readsBefore = bank.reads();
  const paying = pay(fleet);
  for (let number = 0; number < payments; number++) {
    bank.change(number);
    await setTimeout(1_000 / changeRate);
  }
  await untilReached(delays);
  const readsPerChange = (bank.reads() - readsBefore) / payments;
  const besideChanges = await paying;
  await scope.end();
  await untilOpen(fleet.gateways, 0);
  return {
    waits: open.waits,
    streams: open.streams,
    readsPerSecond: (after.reads - before.reads) / elapsed,
    readsPerChange,
    reached: delays.length,
    p50: percentile(delays, 0.5),
    p99: percentile(delays, 0.99),
    longest: percentile(delays, 1),
    rssBefore,
    rss,
    cpu: (after.cpuMs - before.cpuMs) / elapsed / 10,
    redisCpu: (after.redisMs - before.redisMs) / elapsed / 10,
    payment: { without, beside, besideChanges },
    errors: Object.fromEntries(listeners.errors()),
  };
}

function rowsOf(measured: readonly Round[]): (readonly [string, string])[] {
  const middle = (numberOf: (round: Round) => number) => median(measured.map(numberOf));
  const listening = waits + streams;
  const ms = (value: number) => `${Math.round(value)} ms`;
  const rssPerListener = middle(({ rss, rssBefore }) => ((rss - rssBefore) * 1024 * instances) / listening);
  const delaysOf = (name: keyof Round['payment']) =>
    `${middle(({ payment }) => payment[name].p50Ms).toFixed(1)}, ${middle(({ payment }) => payment[name].p99Ms).toFixed(1)} ms`;
  const failed = measured.flatMap(({ payment }) => Object.values(payment));
  return [
    [
      'waiting reads and streams that are open',
      `${middle((one) => one.waits)} + ${middle((one) => one.streams)}`,
    ],
    ['requests to the bank per second, nothing changes', middle((one) => one.readsPerSecond).toFixed(1)],
    [
      'requests to the bank per changed payment, polls included',
      middle((one) => one.readsPerChange).toFixed(1),
    ],
    [
      'listeners that a change has reached, least',
      `${Math.min(...measured.map(({ reached }) => reached))} of ${listening}`,
    ],
    [
      'from the answer of the bank to the listener: p50, p99, longest',
      [middle((one) => one.p50), middle((one) => one.p99), middle((one) => one.longest)].map(ms).join(', '),
    ],
    [
      'RSS of an instance, before and with listeners',
      `${middle((one) => one.rssBefore).toFixed(0)}, ${middle((one) => one.rss).toFixed(0)} MiB`,
    ],
    [
      'RSS per listener, in the first round',
      `${((((measured[0]?.rss ?? 0) - (measured[0]?.rssBefore ?? 0)) * 1024 * instances) / listening).toFixed(1)} KiB`,
    ],
    ['RSS per listener', `${rssPerListener.toFixed(1)} KiB`],
    ['CPU of all instances, nothing changes', `${middle((one) => one.cpu).toFixed(1)} %`],
    ['CPU per 1,000 listeners', `${((middle((one) => one.cpu) * 1_000) / listening).toFixed(2)} %`],
    ['CPU of Redis', `${middle((one) => one.redisCpu).toFixed(1)} %`],
    [`${paymentRate} payments/s without listeners: p50, p99`, delaysOf('without')],
    ['beside listeners', delaysOf('beside')],
    [`beside listeners, ${changeRate} payments change per second`, delaysOf('besideChanges')],
    ['payments that failed', `${failed.reduce((sum, { errors }) => sum + errors, 0)}`],
    [
      'other responses to listeners, by status',
      measured.map(({ errors }) => JSON.stringify(errors)).join(' '),
    ],
  ];
}

interface Fleet {
  readonly gateways: readonly GatewayProcess[];
  readonly pids: readonly number[];
  /** 0: there is none. */
  readonly redisPid: number;
}

function pay({ gateways }: Fleet): Promise<PaymentDelays> {
  const scope = createScope();
  const ports = gateways.map(({ url }) => Number(new URL(url).port));
  const load = { ports, apiKey: keyOf(0), perSecond: paymentRate, seconds };
  const module = new URL('./notifications/payments.ts', import.meta.url).href;
  return callInThread(scope, module, payAtSteadyRate, load).finally(scope.end);
}

function costsOf({ pids, redisPid }: Fleet, bank: ChangingBank) {
  return {
    reads: bank.reads(),
    cpuMs: cpuMsOf(pids),
    redisMs: redisPid > 0 ? cpuMsOf([redisPid]) : 0,
    atMs: performance.now(),
  };
}

/** A scope that ends when the benchmark says so. */
function createScope(): TestScope & { end(): Promise<void> } {
  const ends: (() => unknown)[] = [];
  return {
    after: (end) => void ends.push(end),
    async end() {
      for (const end of ends.splice(0).toReversed()) await end();
    },
  };
}

async function startGateways(life: TestScope, bank: ChangingBank): Promise<Fleet> {
  const redis = values['without-redis'] ? undefined : await startRedis(life);
  const postgres = await startPostgres(life);
  const sections = {
    listen: { maxConnections: 10_000 },
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    clients: Array.from({ length: tenants }, (_, tenant) => ({
      name: `tenant-${tenant}`,
      apiKeySha256: createHash('sha256').update(keyOf(tenant)).digest('hex'),
    })),
    shaping: { expectedInstances: instances },
    notifications: { maxWaiting: waits + streams },
    state: { postgres: postgres.url, ...(redis && { redis: redis.url }) },
  };
  const gateways: GatewayProcess[] = [];
  for (let started = 0; started < instances; started++)
    gateways.push(await startGatewayProcess(life, sections, { shell: 'ulimit -n 16384; exec' }));
  const info = redis ? String(await redis.command('INFO', 'server')) : '';
  const pids = gateways.flatMap(({ command }) => command.pid ?? []);
  return { gateways, pids, redisPid: Number(/^process_id:(\d+)/m.exec(info)?.[1] ?? 0) };
}

function keyOf(tenant: number): string {
  return `key ${tenant}`;
}

function tenantOf(payment: number): number {
  return payment % tenants;
}

/** The bank numbers them in the order of their initiation. */
async function createPayments(gateways: readonly GatewayProcess[]): Promise<void> {
  for (let payment = 0; payment < payments; payment++) {
    const headers = [...initiation.headers, ['X-API-Key', keyOf(tenantOf(payment))] as const];
    const { status, text } = await call(gateways[0]?.url ?? '', { ...initiation, headers });
    if (status !== 201) throw new Error(text);
  }
}

/** Each tenant has two users, whose reads are spread over payments and instances. */
function targetOf(gateways: readonly GatewayProcess[], count: number): Target {
  const payment = count % payments;
  const user = Math.floor(count / payments) % 2;
  return {
    url: gateways[count % instances]?.url ?? '',
    path: `${transfersPath}/p${payment}/status`,
    headers: {
      'X-API-Key': keyOf(tenantOf(payment)),
      Authorization: `Bearer ${user}`,
      Accept: 'application/json',
    },
    payment,
  };
}

/** Waits until so many listeners are open, for up to a minute. */
async function untilOpen(gateways: readonly GatewayProcess[], wanted: number) {
  const count = async (kind: 'wait' | 'stream') => {
    const counts = await Promise.all(gateways.map((gateway) => statusListenersOf(gateway, kind)));
    return counts.reduce((sum, one) => sum + one, 0);
  };
  let open = { waits: 0, streams: 0 };
  for (let tries = 0; tries < 60 && (tries === 0 || open.waits + open.streams !== wanted); tries++) {
    await setTimeout(1_000);
    open = { waits: await count('wait'), streams: await count('stream') };
  }
  return open;
}

async function untilReached(delays: readonly number[]): Promise<void> {
  for (let tries = 0; tries < 60 && delays.length < waits + streams; tries++) await setTimeout(500);
}

function rssOf({ pids }: Fleet): number {
  return pids.reduce((sum, pid) => sum + memoryMiB(pid, 'VmRSS'), 0) / pids.length;
}
