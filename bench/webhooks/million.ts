/** Many subscriptions on one Redis, of which one tenant has nine tenths: what they cost, and how many of them a rate can serve. */

import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { encryptSchedules, readEncryptionKeys } from '../../src/state/encryption.ts';
import type { Schedules } from '../../src/state/former/schedules.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { migrate } from '../../src/store/migrations.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { temporaryFolder } from '../../test/kit/folder.ts';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { type RedisServer, startRedis } from '../../test/kit/redis.ts';
import { metricOf } from '../../test/kit/status-listeners.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { cpuMsOf, memoryMiB } from '../measure/proc.ts';
import { percentile } from '../measure/statistics.ts';
import { type CountingBank, startCountingBank } from './counting-bank.ts';
import {
  firstDueMs,
  hookUrl,
  keyOf,
  makeDue,
  paymentIdOf,
  pollQueueOf,
  status,
  tenantCount,
  tenantName,
  tenantOf,
  writePayments,
  writeSubscriptions,
} from './stored-subscriptions.ts';

export interface MillionRun {
  readonly subscriptions: number;
  /** Each `shaping.rate` to measure, per second. */
  readonly rates: readonly number[];
  /** Of each measurement. */
  readonly seconds: number;
}

type Rows = (readonly [what: string, measured: string])[];

/** As the defaults. */
const share = 0.2;
const maxIntervalSeconds = 3_600;
const prefix = 'penstock:';
/** For the JIT compiler. */
const warmUpMs = 15_000;
/** How often one subscription is made due. */
const searches = 30;

export async function measureMillion(
  life: TestScope,
  { subscriptions: count, rates, seconds }: MillionRun,
): Promise<Rows> {
  const redis = await startRedis(life);
  const bank = await startCountingBank(life, status);
  const sections = createSections(life, redis, bank);
  const state = createRedisState({ kind: 'single', url: redis.url }, prefix, () => {}, 2_000);
  life.after(() => state.close());
  await state.open();
  const schedules = encryptSchedules(state.schedules, readEncryptionKeys(sections.keyFile));
  const rows: Rows = [];
  const report = (what: string, measured: string) => {
    rows.push([what, measured]);
    console.error(`${what}: ${measured}`);
  };
  const usage = await createUsage(redis, seconds);

  const gateway = await startGatewayProcess(life, sections.of(rates[0] ?? 50));
  await setTimeout(warmUpMs);
  report('a gateway without subscriptions, idle', await usage(gateway));
  await gateway.stop();

  const database = openSqlite(sections.databaseFile);
  await migrate(database);
  await writePayments(database, count);
  await database.close();
  const before = { bytes: await usedBytes(redis), redisMs: await redisCpuMs(redis), cpu: process.cpuUsage() };
  await writeSubscriptions(schedules, count);
  const bytes = (await usedBytes(redis)) - before.bytes;
  const { user, system } = process.cpuUsage(before.cpu);
  report('memory of Redis for one subscription', `${(bytes / count).toFixed(0)} B`);
  report(
    'CPU to make one: of Redis, of the instance with encryption',
    `${((((await redisCpuMs(redis)) - before.redisMs) * 1_000) / count).toFixed(1)} µs, ${((user + system) / count).toFixed(1)} µs`,
  );

  await gateway.start();
  await setTimeout(warmUpMs);
  report(`with ${count} subscriptions, none of them due`, await usage(gateway));
  await reportSearches(report, schedules, bank, count);

  await makeDue(schedules, count);
  for (const rate of rates) {
    await gateway.stop();
    gateway.rewrite(sections.of(rate));
    await gateway.start();
    await setTimeout(warmUpMs);
    bank.reads.clear();
    const startedAtMs = performance.now();
    const used = await usage(gateway);
    const reads = new Map(bank.reads);
    const elapsed = (performance.now() - startedAtMs) / 1_000;
    const perSecond = sum([...reads.values()]) / elapsed;
    const allowed = rate * share;
    const others = Array.from({ length: tenantCount - 1 }, (_, index) => reads.get(index + 1) ?? 0);
    report(
      `all due, rate ${rate}/s: polls per second; allowed`,
      `${perSecond.toFixed(1)}; ${allowed.toFixed(0)}`,
    );
    report(
      `all due, rate ${rate}/s: polls of the tenant with nine tenths; of the others, fewest, most`,
      `${reads.get(0) ?? 0}; ${Math.min(...others)}, ${Math.max(...others)}`,
    );
    report(`all due, rate ${rate}/s`, used);
    report(
      `subscriptions that ${rate}/s can serve once per hour; until ${count} are read once`,
      `${Math.round(allowed * maxIntervalSeconds)}; ${(count / allowed / 3_600).toFixed(1)} h`,
    );
  }
  await setTimeout(warmUpMs);
  const overdue = await metricOf(gateway, 'penstock_subscriptions', { state: 'overdue' });
  report('overdue subscriptions, as the metric shows', String(overdue));
  return rows;
}

/** How long it takes to find what is due among many. */
async function reportSearches(
  report: (what: string, measured: string) => void,
  schedules: Schedules,
  bank: CountingBank,
  count: number,
): Promise<void> {
  const queue = pollQueueOf(0);
  const empty = await timesMs(200, () => schedules.take(queue, 64, 1_000));
  report('to find nothing due in the largest queue: p50, p99', quantiles(empty, 'ms', 2));
  const found: number[] = [];
  for (let search = 0; search < searches; search++) {
    const number = Math.floor(((search + 0.5) / searches) * count);
    await setTimeout(Math.random() * 1_000); // the gateway searches once per second
    const read = new Promise<void>((resolve) => bank.watch(paymentIdOf(number), resolve));
    const startedAtMs = performance.now();
    await schedules.reschedule(keyOf(number), { queue: pollQueueOf(tenantOf(number)), inMs: 0 });
    await read;
    found.push(performance.now() - startedAtMs);
  }
  report('from the due time to the bank, for one of them: p50, longest', quantiles(found, 'ms', 0, 1));
  const due = Array.from({ length: 1_000 }, (_, index) => index).filter((number) => tenantOf(number) === 0);
  await Promise.all(due.map((number) => schedules.reschedule(keyOf(number), { queue: 'bench', inMs: 0 })));
  const taken = await timesMs(Math.floor(due.length / 64), () => schedules.take('bench', 64, firstDueMs));
  report('to find and lease 64 that are due: p50, longest', quantiles(taken, 'ms', 2, 1));
}

async function timesMs(count: number, act: () => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let done = 0; done < count; done++) {
    const startedAtMs = performance.now();
    await act();
    times.push(performance.now() - startedAtMs);
  }
  return times;
}

const quantiles = (times: readonly number[], unit: string, digits: number, upper = 0.99): string =>
  [0.5, upper].map((part) => `${percentile(times, part).toFixed(digits)} ${unit}`).join(', ');

function createSections(life: TestScope, redis: RedisServer, bank: CountingBank) {
  const folder = temporaryFolder(life);
  const [keyFile, secretFile, databaseFile] = [
    join(folder, 'key'),
    join(folder, 'secret'),
    join(folder, 'state.db'),
  ];
  writeFileSync(keyFile, randomBytes(32).toString('base64'));
  writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}`);
  const clients = Array.from({ length: tenantCount }, (_, tenant) => ({
    name: tenantName(tenant),
    apiKeySha256: createHash('sha256').update(tenantName(tenant)).digest('hex'),
    notifications: { urls: [hookUrl], secretFile },
  }));
  return {
    keyFile,
    databaseFile,
    of: (rate: number) => ({
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      clients,
      shaping: { rate: `${rate}/s`, burst: rate },
      state: { file: databaseFile, redis: redis.url, encryptionKeyFile: keyFile },
    }),
  };
}

/** Measures what a gateway and its Redis use. */
async function createUsage(
  redis: RedisServer,
  seconds: number,
): Promise<(gateway: GatewayProcess) => Promise<string>> {
  const redisPid = Number(/^process_id:(\d+)/m.exec(String(await redis.command('INFO', 'server')))?.[1]);
  return async ({ command: { pid = 0 } }) => {
    const read = async () => ({
      cpuMs: cpuMsOf([pid]),
      redisMs: cpuMsOf([redisPid]),
      scripts: await scriptsOf(redis),
      atMs: performance.now(),
    });
    const before = await read();
    await setTimeout(seconds * 1_000);
    const after = await read();
    const percent = (what: 'cpuMs' | 'redisMs') =>
      (((after[what] - before[what]) / (after.atMs - before.atMs)) * 100).toFixed(1);
    const batches = ((after.scripts - before.scripts) * 1_000) / (after.atMs - before.atMs);
    return `CPU ${percent('cpuMs')} %, RSS ${memoryMiB(pid, 'VmRSS').toFixed(0)} MiB; Redis: CPU ${percent('redisMs')} %, ${batches.toFixed(0)} batches of commands per second`;
  };
}

async function scriptsOf(redis: RedisServer): Promise<number> {
  const stats = String(await redis.command('INFO', 'commandstats'));
  const calls = stats.matchAll(/^cmdstat_eval[^:]*:calls=(\d+)/gm);
  return sum(Array.from(calls, ([, count]) => Number(count)));
}

const usedBytes = async (redis: RedisServer): Promise<number> =>
  Number(/used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);

async function redisCpuMs(redis: RedisServer): Promise<number> {
  const info = String(await redis.command('INFO', 'cpu'));
  const seconds = Array.from(info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm), ([, value]) =>
    Number(value),
  );
  return sum(seconds) * 1_000;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
