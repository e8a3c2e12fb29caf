/**
 * `npm run bench:notifications`: waiting reads and event streams on several instances: what they cost the bank, and how soon a
 * change reaches all of them.
 */

import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { call } from '../test/kit/call.ts';
import { type GatewayProcess, startGatewayProcess } from '../test/kit/gateway-process.ts';
import { startRedis } from '../test/kit/redis.ts';
import { initiation, transfersPath } from '../test/kit/request.ts';
import { listenersOf } from '../test/kit/status-listeners.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { cpuMsOf, memoryMiB } from './measure/proc.ts';
import { type ChangingBank, startChangingBank } from './notifications/changing-bank.ts';
import { createListeners, type Target } from './notifications/listeners.ts';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '3' },
    tenants: { type: 'string', default: '10' },
    payments: { type: 'string', default: '100' },
    waits: { type: 'string', default: '10000' },
    streams: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '30' },
  },
});
const [instances, tenants, payments, waits, streams, seconds] = [
  Number(values.instances),
  Number(values.tenants),
  Number(values.payments),
  Number(values.waits),
  Number(values.streams),
  Number(values.seconds),
];

/** Listeners that are started per second. */
const startRate = 500;
/** Payments that change per second. */
const changeRate = 5;

await withCleanup(async (life) => {
  const bank = await startChangingBank(life);
  const { gateways, redisPid } = await startGateways(life, bank);
  const pids = gateways.flatMap(({ command }) => command.pid ?? []);
  await createPayments(gateways);
  const delays: number[] = [];
  const listeners = createListeners(life, (payment) => {
    const shownAtMs = bank.firstShownMs(payment);
    if (shownAtMs !== undefined) delays.push(performance.now() - shownAtMs);
  });
  const rssBefore = rssOf(pids);

  for (let count = 0; count < waits + streams; count++) {
    const target = targetOf(gateways, count);
    if (count < waits) listeners.wait(target);
    else listeners.stream(target);
    if (count % (startRate / 10) === 0) await setTimeout(100);
  }
  const open = await untilOpen(gateways);
  const rss = rssOf(pids);

  const before = {
    reads: bank.reads(),
    cpuMs: cpuMsOf(pids),
    redisMs: cpuMsOf([redisPid]),
    atMs: performance.now(),
  };
  await setTimeout(seconds * 1_000);
  const elapsed = (performance.now() - before.atMs) / 1_000;
  const perSecond = (bank.reads() - before.reads) / elapsed;
  const cpu = (cpuMsOf(pids) - before.cpuMs) / elapsed / 10;
  const redisCpu = (cpuMsOf([redisPid]) - before.redisMs) / elapsed / 10;

  delays.length = 0;
  const readsBefore = bank.reads();
  for (let payment = 0; payment < payments; payment++) {
    bank.change(payment);
    await setTimeout(1_000 / changeRate);
  }
  await untilReached(delays);
  const sorted = delays.toSorted((one, other) => one - other);
  const quantile = (part: number) => `${Math.round(sorted[Math.ceil(part * sorted.length) - 1] ?? 0)} ms`;

  const listening = open.waits + open.streams;
  const rows = [
    ['waiting reads and streams that are open', `${open.waits} + ${open.streams}`],
    ['requests to the bank per second, nothing changes', perSecond.toFixed(1)],
    [
      'requests to the bank per changed payment, polls included',
      ((bank.reads() - readsBefore) / payments).toFixed(1),
    ],
    ['listeners that a change has reached', `${sorted.length} of ${waits + streams}`],
    [
      'from the answer of the bank to the listener: p50, p99, longest',
      [0.5, 0.99, 1].map(quantile).join(', '),
    ],
    ['RSS of an instance, before and with listeners', `${rssBefore.toFixed(0)}, ${rss.toFixed(0)} MiB`],
    ['RSS per listener', `${(((rss - rssBefore) * 1024 * instances) / listening).toFixed(1)} KiB`],
    ['CPU of all instances, nothing changes', `${cpu.toFixed(1)} %`],
    ['CPU per 1,000 listeners', `${((cpu * 1_000) / listening).toFixed(2)} %`],
    ['CPU of Redis', `${redisCpu.toFixed(1)} %`],
    ['errors, by status', JSON.stringify(Object.fromEntries(listeners.errors()))],
  ];
  console.log(formatTable(['', 'measured'], rows));
});

async function startGateways(life: TestScope, bank: ChangingBank) {
  const redis = await startRedis(life);
  const sections = {
    listen: { maxConnections: 10_000 },
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    clients: Array.from({ length: tenants }, (_, tenant) => ({
      name: `tenant-${tenant}`,
      apiKeySha256: createHash('sha256').update(keyOf(tenant)).digest('hex'),
    })),
    shaping: { expectedInstances: instances },
    notifications: { maxWaiting: waits + streams },
    state: { redis: redis.url },
  };
  const gateways: GatewayProcess[] = [];
  for (let started = 0; started < instances; started++)
    gateways.push(await startGatewayProcess(life, sections, { shell: 'ulimit -n 16384; exec' }));
  const info = String(await redis.command('INFO', 'server'));
  return { gateways, redisPid: Number(/^process_id:(\d+)/m.exec(info)?.[1]) };
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

/** Waits until all listeners are open, or no more of them open. */
async function untilOpen(gateways: readonly GatewayProcess[]) {
  const count = async (kind: 'wait' | 'stream') => {
    const counts = await Promise.all(gateways.map((gateway) => listenersOf(gateway, kind)));
    return counts.reduce((sum, one) => sum + one, 0);
  };
  let open = { waits: 0, streams: 0 };
  for (let tries = 0; tries < 60 && open.waits + open.streams < waits + streams; tries++) {
    await setTimeout(1_000);
    open = { waits: await count('wait'), streams: await count('stream') };
  }
  return open;
}

async function untilReached(delays: readonly number[]): Promise<void> {
  for (let tries = 0; tries < 60 && delays.length < waits + streams; tries++) await setTimeout(500);
}

function rssOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + memoryMiB(pid, 'VmRSS'), 0) / pids.length;
}
