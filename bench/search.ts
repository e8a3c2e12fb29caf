/** `npm run bench:search`: what the records of ten instances over a day take in Redis, and how long a search in them takes. */

import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { hashPaymentId } from '../src/request/payment-hash.ts';
import { createRequestSearch } from '../src/request-log/find-requests.ts';
import { createRequestHistory } from '../src/request-log/request-history.ts';
import { createRequestLogWriter } from '../src/request-log/request-log-writer.ts';
import type { RequestLog } from '../src/state/ports.ts';
import { createRedisState } from '../src/state/redis.ts';
import { createLiveStats } from '../src/telemetry/live-stats.ts';
import { createRecentRequests } from '../src/telemetry/recent-requests.ts';
import type { RequestQuery } from '../src/telemetry/request-search.ts';
import { startRedis } from '../test/kit/redis.ts';
import { failedRecord, requestRecord } from '../test/kit/request-records.ts';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '10' },
    /** Requests per second of all instances together. */
    rate: { type: 'string', default: '50' },
    hours: { type: 'string', default: '24' },
    /** As `requests.selfService`. */
    'self-service': { type: 'boolean', default: false },
  },
});
const [count, rate, hours] = [Number(values.instances), Number(values.rate), Number(values.hours)];
const hourMs = 3_600_000;

await withCleanup(async (life) => {
  const redis = await startRedis(life);
  const state = createRedisState({ kind: 'single', url: redis.url }, 'bench:', () => {}, 2_000);
  life.after(() => state.close());
  await state.open();
  let nowMs = Date.now() - hours * hourMs;
  const now = () => nowMs;
  const selfService = values['self-service'];
  const settings = () => ({ keepFor: hours * hourMs, maxStoredPerTenant: 1024 ** 4, selfService });

  let writes = 0;
  const counted: RequestLog = {
    ...state.requestLog,
    append(slice, write) {
      writes += 1;
      return state.requestLog.append(slice, write);
    },
  };
  const instances = Array.from({ length: count }, (_, index) => {
    const [recentRequests, liveStats] = [createRecentRequests(), createLiveStats(now)];
    const source = { requestLog: counted, recentRequests, instance: `gateway-${index}`, now };
    const writer = createRequestLogWriter({
      ...source,
      liveStats,
      settings,
      tenants: () => 20,
      countNotStored: (records) => {
        throw new Error(`${records} records were not stored`);
      },
    });
    const tenants = { recordedAs: (name: string) => [name], nameOf: (recorded: string) => recorded };
    const reader = { writer, keepFor: () => settings().keepFor, tenants };
    return {
      writer,
      search: createRequestSearch({ ...source, ...reader }),
      history: createRequestHistory({ requestLog: state.requestLog, ...reader, now }),
      end(record: ReturnType<typeof requestRecord>) {
        recentRequests.onRequestEnd(record);
        liveStats.onRequestEnd(record);
      },
    };
  });
  const [one] = instances;
  if (!one) throw new Error('--instances must be at least 1');

  const used = async () =>
    Number(/used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);
  const emptyBytes = await used();
  const wanted = { requestId: '', payment: '' };
  let requests = 0;
  const startCpu = process.cpuUsage();
  for (let second = 0; second < hours * 3_600; second++) {
    for (let each = 0; each < rate; each++) {
      const instance = instances[requests % count];
      instance?.end(sampleRecord(nowMs + (each * 1_000) / rate, requests));
      requests += 1;
    }
    nowMs += 1_000;
    await Promise.all(instances.map(({ writer }) => writer.flush()));
    if (second === 1_000) {
      wanted.requestId = randomUUID();
      wanted.payment = randomUUID();
      const [high, low] = hashPaymentId(wanted.payment).words;
      one.end(
        requestRecord({ requestId: wanted.requestId, receivedAtMs: nowMs }, [{ what: 'payment', high, low }]),
      );
    }
  }
  const { user, system } = process.cpuUsage(startCpu);
  const bytes = (await used()) - emptyBytes;
  console.log(`${requests} requests in ${hours} h on ${count} instances`);
  console.log(
    `Redis: ${(bytes / 1024 ** 2).toFixed(0)} MiB, ${(bytes / requests).toFixed(0)} bytes per request`,
  );
  const perSecond = writes / (hours * 3_600 * count);
  console.log(`Redis: ${perSecond.toFixed(2)} operations per second and instance`);
  console.log(
    `gateway: ${((user + system) / requests).toFixed(1)} µs per request, including the creation of the records`,
  );

  const rows: string[][] = [];
  const measure = async (what: string, run: () => Promise<number>) => {
    const startMs = performance.now();
    const found = await run();
    rows.push([what, String(found), `${(performance.now() - startMs).toFixed(0)}`]);
  };
  const find = (query: Partial<RequestQuery>) => async () => {
    const { requests } = await one.search.find({ fromMs: 0, toMs: nowMs, limit: 50, ...query });
    return requests.length;
  };
  for (let round = 0; round < 2; round++) {
    await measure('X-Request-ID', find({ requestId: wanted.requestId }));
    await measure('payment', find({ payment: wanted.payment }));
    await measure('unknown X-Request-ID', find({ requestId: randomUUID() }));
    for (const tenant of selfService ? ['merchants', 'tenant-3'] : [])
      await measure(`look-up by ${tenant}`, async () => {
        const { requests } = await one.search.findOwn(tenant, wanted.requestId, 50);
        return requests.length;
      });
    await measure('tenant', find({ tenant: 'tenant-3' }));
    await measure('error', find({ error: 'CIRCUIT_OPEN' }));
    await measure(
      'tenant, an hour long ago',
      find({ tenant: 'tenant-3', toMs: nowMs - (hours - 2) * hourMs }),
    );
    await measure('history', async () => (await one.history.figures(0, nowMs)).points.length);
    await measure('errors', async () => (await one.history.errors()).length);
  }
  console.log(`\n${formatTable(['search', 'found', 'ms'], rows)}`);
});

/** Mostly status reads; one in ten is a payment, one in a hundred is refused. */
function sampleRecord(receivedAtMs: number, index: number) {
  const requestId = randomUUID();
  const tenant = `tenant-${index % 20}`;
  const durationMs = 5 + ((index * 7) % 400) / 10;
  if (index % 100 === 99) return { ...failedRecord('CIRCUIT_OPEN', 503), requestId, receivedAtMs };
  const payment = [(index * 2_654_435_761) | 0, index] as const;
  if (index % 10 === 0)
    return requestRecord({ requestId, receivedAtMs, durationMs }, [
      { what: 'ledger', verdict: 'claimed', waitedMs: 0.4 },
      { what: 'environment', environment: 'sandbox', why: 'active' },
      { what: 'permit', waitedMs: 0.1 },
      {
        what: 'call',
        attempt: 1,
        connection: 'new',
        connectMs: 1.2,
        firstByteMs: 9,
        totalMs: durationMs - 2,
        status: 201,
      },
      { what: 'payment', high: payment[0], low: payment[1] },
      { what: 'recorded', as: 'answered' },
    ]);
  const request = {
    operation: 'getPaymentStatus',
    lane: 'status',
    client: `client of ${tenant}`,
    tenant,
    tenantId: tenant,
    payment,
  } as const;
  return requestRecord({ requestId, receivedAtMs, durationMs, request, status: 200 }, [
    { what: 'environment', environment: 'sandbox', why: 'affinity' },
    { what: 'cache', verdict: 'miss' },
    { what: 'permit', waitedMs: 0.1 },
    { what: 'call', attempt: 1, connection: 'reused', firstByteMs: 3, totalMs: durationMs - 1, status: 200 },
  ]);
}
