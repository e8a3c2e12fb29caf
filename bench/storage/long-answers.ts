/** A tenant whose requests get long answers of the bank, another tenant beside it, and the memory of Redis. */

import { createHash, randomUUID } from 'node:crypto';
import { Agent, request as requestHttp } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { callOnce } from '../../test/kit/call.ts';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { parsePrometheus } from '../../test/kit/prometheus.ts';
import { type RedisServer, startRedis } from '../../test/kit/redis.ts';
import { initiation } from '../../test/kit/request.ts';
import { startStubBank } from '../../test/kit/stub-bank.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { closedWith } from '../outage/measure.ts';

/** What the bank answers to the tenant. */
export interface Answers {
  readonly status: number;
  readonly bytes: number;
}

/** Ends after `count` requests, or after `maxMs`. */
interface StorageRun {
  readonly count: number;
  readonly maxMs: number;
}

const concurrency = 8;
/** Between two payments of the other tenant, in milliseconds. */
const pauseMs = 100;
const mebibyte = 1024 ** 2;
/** The default of `idempotency.maxStoredPerTenant`. Bytes. */
const maxStoredPerTenant = 1024 * mebibyte;

/** @returns the columns of the table, as text */
export async function measureStorage(
  life: TestScope,
  answers: Answers,
  { count, maxMs }: StorageRun,
): Promise<readonly string[]> {
  const { redis, gateway } = await startGateway(life, answers);
  const agent = closedWith(life, new Agent({ keepAlive: true }));
  const pay = (tenant: string) => statusOf(gateway, tenant, agent);
  await pay('other');
  const before = await memoryOf(redis);

  const startedAtMs = performance.now();
  const isOver = () => offered >= count || performance.now() - startedAtMs > maxMs;
  let offered = 0;
  let refused = 0;
  const sendAll = async () => {
    while (!isOver()) {
      offered++;
      if ((await pay('long')) === 429) refused++;
    }
  };
  const others: number[] = [];
  const payOthers = async () => {
    while (!isOver()) {
      others.push(await pay('other'));
      await setTimeout(pauseMs);
    }
  };
  await Promise.all([payOthers(), ...Array.from({ length: concurrency }, sendAll)]);

  const tookMs = performance.now() - startedAtMs;
  const grown = (await memoryOf(redis)) - before;
  const accepted = others.filter((status) => status === 201).length;
  const stored = offered - refused;
  return [
    ...[offered, stored, refused].map(String),
    ...[(stored * answers.bytes) / mebibyte, grown / mebibyte].map((value) => value.toFixed(1)),
    (grown / (stored + others.length)).toFixed(0),
    ((await countedBytes(gateway)) / mebibyte).toFixed(1),
    String(maxStoredPerTenant / mebibyte),
    String(others.length),
    `${((100 * accepted) / others.length).toFixed(1)} %`,
    ((1_000 * offered) / tookMs).toFixed(0),
  ];
}

async function startGateway(
  life: TestScope,
  { status, bytes }: Answers,
): Promise<{ readonly redis: RedisServer; readonly gateway: GatewayProcess }> {
  const redis = await startRedis(life);
  const headers = [['Content-Type', 'application/json']] as const;
  const long = (paymentId: string) => {
    const message = { category: 'ERROR', code: 'SERVICE_BLOCKED', text: 'x'.repeat(bytes) };
    const members = { transactionStatus: 'RCVD', paymentId, _links: {} };
    return Buffer.from(
      JSON.stringify(status < 400 ? { ...members, tppMessages: [message] } : { tppMessages: [message] }),
    );
  };
  const bodies = Array.from({ length: 16 }, () => long(randomUUID()));
  let answered = 0;
  const bank = await startStubBank(life, ({ body }) => {
    if (body.includes('long')) return { status, headers, body: bodies[answered++ % bodies.length] ?? '' };
    const payment = { transactionStatus: 'RCVD', paymentId: randomUUID(), _links: {} };
    return { status: 201, headers, body: JSON.stringify(payment) };
  });
  const gateway = await startGatewayProcess(life, {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } },
    clients: ['long', 'other'].map((name) => ({ name, apiKeySha256: sha256(`key of ${name}`) })),
    idempotency: { maxStoredPerTenant: `${maxStoredPerTenant}B` },
    state: { redis: redis.url },
  });
  return { redis, gateway };
}

/** Initiates a payment and discards the answer: the client of the test kit would decode 4 MiB of text. */
function statusOf({ url }: GatewayProcess, tenant: string, agent: Agent): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const body = JSON.stringify({ ...JSON.parse(initiation.body), remittanceInformationUnstructured: tenant });
  const headers = {
    ...Object.fromEntries(initiation.headers),
    'X-Request-ID': randomUUID(),
    'X-API-Key': `key of ${tenant}`,
    'Content-Length': Buffer.byteLength(body),
  };
  requestHttp(url + initiation.path, { method: 'POST', headers, agent })
    .once('error', reject)
    .once('response', (response) => {
      response
        .once('error', reject)
        .once('end', () => resolve(response.statusCode ?? 0))
        .resume();
    })
    .end(body);
  return promise;
}

/** Of the keys and values, without the buffers of connections. Bytes. */
const memoryOf = async (redis: RedisServer) =>
  Number(/used_memory_dataset:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);

async function countedBytes({ adminUrl }: GatewayProcess): Promise<number> {
  const { text } = await callOnce(adminUrl, { method: 'GET', path: '/metrics' });
  const samples = parsePrometheus(text).get('penstock_stored_bytes_total')?.samples ?? [];
  return samples.reduce((sum, { value }) => sum + value, 0);
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
