/** Many subscriptions in one database, of which one tenant has nine tenths: what they cost, and how many of them a rate can serve. */

import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createSubscriptionStore } from '../../src/notifications/subscription-store.ts';
import { readEncryptionKeys } from '../../src/state/encryption.ts';
import type { Database } from '../../src/store/database.ts';
import {
  createSubscriptionTable,
  type SubscriptionTable,
  type TakenSubscription,
} from '../../src/store/subscriptions.ts';
import { temporaryFolder } from '../../test/kit/folder.ts';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { metricOf } from '../../test/kit/status-listeners.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { within } from '../../test/kit/within.ts';
import { cpuMsOf, memoryMiB } from '../measure/proc.ts';
import { percentile } from '../measure/statistics.ts';
import { type BenchDatabase, startBenchDatabase } from './bench-database.ts';
import { type CountingBank, startCountingBank } from './counting-bank.ts';
import {
  firstDueMs,
  hookUrl,
  idOf,
  makeDue,
  paymentIdOf,
  readQueueOf,
  status,
  tenantCount,
  tenantName,
  tenantOf,
  writePayments,
  writeSubscriptions,
} from './stored-subscriptions.ts';

export interface ManyRun {
  readonly dialect: Database['dialect'];
  readonly subscriptions: number;
  /** Each `shaping.rate` to measure, per second. */
  readonly rates: readonly number[];
  /** Of each measurement. */
  readonly seconds: number;
}

type Rows = (readonly [what: string, measured: string])[];
type Report = (what: string, measured: string) => void;

/** As the default. */
const share = 0.2;
/** For the JIT compiler. */
const warmUpMs = 15_000;
/** How many subscriptions become due, one after the other. */
const singles = 30;
/** As many as an instance takes from one queue, and from all of them. */
const [perQueue, perInstance] = [32, 128];

export async function measureMany(
  life: TestScope,
  { dialect, subscriptions: count, rates, seconds }: ManyRun,
): Promise<Rows> {
  const stored = await startBenchDatabase(life, dialect);
  const bank = await startCountingBank(life, status);
  const sections = createSections(life, stored, bank);
  const rows: Rows = [];
  const report: Report = (what, measured) => {
    rows.push([what, measured]);
    console.error(`${what}: ${measured}`);
  };
  const usage = createUsage(stored, seconds);

  const gateway = await startGatewayProcess(life, sections.of(rates[0] ?? 50));
  await setTimeout(warmUpMs);
  report('a gateway without subscriptions, idle', await usage(gateway));
  await gateway.stop();

  await withTable(stored, async (table, database) => {
    await writePayments(database, count);
    const [bytes, cpu, serverMs] = [await bytesOf(database), process.cpuUsage(), cpuMsOf(stored.pids())];
    const store = createSubscriptionStore(table, readEncryptionKeys(sections.keyFile));
    await writeSubscriptions(store, count);
    const { user, system } = process.cpuUsage(cpu);
    const serverUs = ((cpuMsOf(stored.pids()) - serverMs) * 1_000) / count;
    report('on disk for one subscription', `${(((await bytesOf(database)) - bytes) / count).toFixed(0)} B`);
    report(
      'CPU to store one: of the instance with encryption, of the server',
      `${((user + system) / count).toFixed(0)} µs, ${serverUs.toFixed(0)} µs`,
    );
    await reportTakes(report, table, count);
  });

  await gateway.start();
  await setTimeout(warmUpMs);
  report(`with ${count} subscriptions, none of them due`, await usage(gateway));
  await gateway.stop();
  await reportDelays(report, stored, gateway, bank, count);

  await withTable(stored, (table) => makeDue(table, count));
  for (const rate of rates) {
    gateway.rewrite(sections.of(rate));
    await gateway.start();
    await setTimeout(warmUpMs);
    bank.reads.clear();
    const startedAtMs = performance.now();
    const used = await usage(gateway);
    const reads = new Map(bank.reads);
    const elapsed = (performance.now() - startedAtMs) / 1_000;
    const perSecond = [...reads.values()].reduce((total, one) => total + one, 0) / elapsed;
    const others = Array.from({ length: tenantCount - 1 }, (_, index) => reads.get(index + 1) ?? 0);
    report(
      `all due, rate ${rate}/s: polls per second; allowed`,
      `${perSecond.toFixed(1)}; ${(rate * share).toFixed(0)}`,
    );
    report(
      `all due, rate ${rate}/s: polls of the tenant with nine tenths; of the others, fewest, most`,
      `${reads.get(0) ?? 0}; ${Math.min(...others)}, ${Math.max(...others)}`,
    );
    report(`all due, rate ${rate}/s`, used);
    const overdue = await metricOf(gateway, 'penstock_subscriptions', { state: 'overdue' });
    report(`all due, rate ${rate}/s: overdue at the end, as the metric shows`, String(overdue));
    await gateway.stop();
  }
  return rows;
}

async function withTable(
  stored: BenchDatabase,
  act: (table: SubscriptionTable, database: Database) => Promise<void>,
): Promise<void> {
  const database = stored.open();
  try {
    await act(createSubscriptionTable(database), database);
  } finally {
    await database.close();
  }
}

/** How long it takes to find what is due among many, and to count all of them, as an instance does. */
async function reportTakes(report: Report, table: SubscriptionTable, count: number): Promise<void> {
  const all = Array.from({ length: tenantCount }, (_, tenant) => readQueueOf(tenant));
  const eachOfAll = Math.floor(perInstance / tenantCount);
  const empty = await timesMs(200, () => table.take('read', all, eachOfAll, 1_000));
  report(`to find nothing due in ${tenantCount} queues: p50, p99`, quantiles(empty, 'ms', 2));
  const due = Array.from({ length: Math.min(1_000, count) }, (_, number) => number).filter(
    (number) => tenantOf(number) === 0,
  );
  await Promise.all(due.map((number) => table.reschedule('read', idOf(number), { inMs: 0 })));
  const taken: TakenSubscription[] = [];
  const times = await timesMs(Math.floor(due.length / perQueue), async () => {
    taken.push(...(await table.take('read', [readQueueOf(0)], perQueue, firstDueMs)));
  });
  report(`to find and lease ${perQueue} that are due: p50, longest`, quantiles(times, 'ms', 2, 1));
  report('to count all subscriptions: p50, longest', quantiles(await timesMs(10, table.count), 'ms', 1, 1));
  await Promise.all(taken.map(({ id, lease }) => table.reschedule('read', id, { inMs: firstDueMs, lease })));
}

/** From the due time of one subscription to the read at the bank. */
async function reportDelays(
  report: Report,
  stored: BenchDatabase,
  gateway: GatewayProcess,
  bank: CountingBank,
  count: number,
): Promise<void> {
  const delays: Promise<number>[] = [];
  await withTable(stored, async (table) => {
    for (let single = 0; single < singles; single++) {
      const number = Math.floor(((single + 0.5) / singles) * count);
      const inMs = Math.round(2 * warmUpMs + 1_000 * (single + Math.random())); // the gateway searches once per second
      const dueAtMs = performance.now() + inMs;
      await table.reschedule('read', idOf(number), { inMs });
      delays.push(
        new Promise((resolve) => bank.watch(paymentIdOf(number), () => resolve(performance.now() - dueAtMs))),
      );
    }
  });
  await gateway.start();
  const found = await within(120_000, 'all single subscriptions are read', Promise.all(delays));
  report('from the due time to the bank, for one of them: p50, longest', quantiles(found, 'ms', 0, 1));
  await gateway.stop();
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

function createSections(life: TestScope, { settings }: BenchDatabase, bank: CountingBank) {
  const folder = temporaryFolder(life);
  const [keyFile, secretFile] = [join(folder, 'key'), join(folder, 'secret')];
  writeFileSync(keyFile, randomBytes(32).toString('base64'));
  writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}`);
  const clients = Array.from({ length: tenantCount }, (_, tenant) => ({
    name: tenantName(tenant),
    apiKeySha256: createHash('sha256').update(tenantName(tenant)).digest('hex'),
    notifications: { urls: [hookUrl], secretFile },
  }));
  return {
    keyFile,
    of: (rate: number) => ({
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      clients,
      shaping: { rate: `${rate}/s`, burst: rate },
      state: { ...settings, encryptionKeyFile: keyFile },
    }),
  };
}

/** Measures what a gateway and the server of its database use. */
function createUsage(stored: BenchDatabase, seconds: number) {
  return async ({ command: { pid = 0 } }: GatewayProcess): Promise<string> => {
    const read = async () => ({
      cpuMs: cpuMsOf([pid]),
      serverMs: cpuMsOf(stored.pids()),
      transactions: await transactionsOf(stored),
      atMs: performance.now(),
    });
    const before = await read();
    await setTimeout(seconds * 1_000);
    const after = await read();
    const perSecond = (what: 'cpuMs' | 'serverMs' | 'transactions') =>
      ((after[what] - before[what]) / (after.atMs - before.atMs)) * 1_000;
    const own = `CPU ${(perSecond('cpuMs') / 10).toFixed(1)} %, RSS ${memoryMiB(pid, 'VmRSS').toFixed(0)} MiB`;
    if (stored.pids().length === 0) return own;
    return `${own}; server: CPU ${(perSecond('serverMs') / 10).toFixed(1)} %, ${perSecond('transactions').toFixed(0)} transactions per second`;
  };
}

/** Since the start of the server; those of this process are few. The server counts them up to 10 s late. */
async function transactionsOf(stored: BenchDatabase): Promise<number> {
  if (stored.pids().length === 0) return 0;
  const database = stored.open();
  const [row] = await database.query(
    'SELECT xact_commit AS commits FROM pg_stat_database WHERE datname = current_database()',
  );
  await database.close();
  return Number(row?.commits);
}

/** Of the table with its indexes; with SQLite, of the file. */
async function bytesOf(database: Database): Promise<number> {
  const [row] = await database.query(
    database.dialect === 'postgres'
      ? `SELECT pg_total_relation_size('subscription') AS bytes`
      : 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()',
  );
  return Number(row?.bytes);
}
