import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { describe, test } from 'node:test';
import { call, callOnce, jsonOf, repeatWhile } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { startGateway } from '../kit/gateway.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { type StubRequest, startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';

const kibibyte = 1024;

/** Answers an initiation with the status and the length that its header `Wanted` names: `201 4194304`. */
function answer(request: StubRequest) {
  const [status = '', bytes = ''] = request.header('wanted').split(' ');
  const rest = { transactionStatus: 'RCVD', paymentId: `payment-${randomUUID()}`, psuMessage: '' };
  const empty = JSON.stringify(status === '201' ? rest : { tppMessages: [], detail: '' });
  const padding = 'x'.repeat(Math.max(0, Number(bytes) - empty.length));
  const body = empty.replace('""', `"${padding}"`);
  return { status: Number(status), headers: [['Content-Type', 'application/json']] as const, body };
}

/** Two instances on one database and one Redis, with two tenants. */
async function startTenants(t: TestContext) {
  const redis = await startRedis(t);
  const bank = await startStubBank(t, answer);
  const sections = {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } },
    clients: clientSettings(),
    idempotency: { maxStoredPerTenant: '1MiB' },
    state: { postgres: await newMigratedPostgres(), redis: redis.url },
  };
  const gateways = [await startGateway(t, sections), await startGateway(t, sections)] as const;
  const pay = (client: ClientName, wanted: string, requestId = randomUUID(), instance: 0 | 1 = 0) => {
    const added = [
      ['X-API-Key', apiKeyOf(client)],
      ['Wanted', wanted],
    ] as const;
    const sent = { ...initiation, headers: [...initiation.headers, ...added], requestId };
    return repeatWhile('STATE_UNAVAILABLE', () => call(gateways[instance].url, sent));
  };
  return { redis, bank, gateways, pay };
}

/** Of all keys with their values, in bytes. INFO also counts what does not depend on them. */
async function memoryOf(redis: RedisServer): Promise<number> {
  const keys = [await redis.command('KEYS', '*')].flat().map(String);
  const usage = (key: string) => redis.command('MEMORY', 'USAGE', key, 'SAMPLES', '0');
  const bytes = await Promise.all(keys.map(usage));
  return bytes.reduce((sum: number, each) => sum + Number(each), 0);
}

describe('answers that are too long to be stored', { skip: skipWithoutRedisServer }, () => {
  test('reach the TPP whole, take a few kilobytes of Redis each, and a repeat gets what it needs', async (t) => {
    const { redis, pay } = await startTenants(t);
    const before = await memoryOf(redis);
    for (const [status, count] of [
      ['201', 6],
      ['400', 6],
    ] as const) {
      const wanted = `${status} ${4096 * kibibyte}`;
      const ids = Array.from({ length: count }, () => randomUUID());
      const replies = await Promise.all(ids.map((id) => pay('rival', wanted, id)));
      for (const [at, id] of ids.entries()) {
        assert.equal(replies[at]?.body.length, 4096 * kibibyte);
        const repeat = await pay('rival', wanted, id, 1);
        assert.deepEqual([repeat.status, repeat.header('Idempotent-Replayed')], [Number(status), 'true']);
        assert.ok(repeat.body.length < 8 * kibibyte);
        assert.match(repeat.text, /stored only a part of the bank's response/);
        if (status === '201') assert.match(String(jsonOf(repeat).paymentId), /^payment-/);
      }
    }
    const each = ((await memoryOf(redis)) - before) / 12;
    assert.ok(each < 8 * kibibyte, `${each} bytes each`);
  });
});

describe('a tenant that stores as much as idempotency.maxStoredPerTenant allows', {
  skip: skipWithoutRedisServer,
}, () => {
  test('has its own new payments refused on all instances, and every payment of another tenant is accepted', async (t) => {
    const { redis, bank, gateways, pay } = await startTenants(t);
    const before = await memoryOf(redis);
    const [offered, refused, first] = [30, [] as string[], randomUUID()];
    for (let count = 0; count < offered; count++) {
      const reply = await pay(
        'rival',
        `403 ${63.5 * kibibyte}`,
        count === 0 ? first : undefined,
        count % 2 ? 1 : 0,
      );
      if (reply.status === 429) {
        assert.equal(reply.header('Penstock-Error'), 'QUOTA_EXCEEDED');
        refused.push(reply.header('Retry-After') ?? '');
      } else assert.equal(reply.status, 403);
      assert.equal((await pay('shop', '201 300')).status, 201);
    }
    assert.ok(refused.length >= offered - 10, `${refused.length} of ${offered} are refused`);
    assert.ok(refused.every((seconds) => Number(seconds) > 60));
    assert.equal(bank.requests.length, 2 * offered - refused.length);
    assert.equal((await pay('rival', '', first)).status, 403);
    const grown = (await memoryOf(redis)) - before;
    assert.ok(grown < 1024 * kibibyte, `Redis stores ${grown} bytes more`);

    const { text } = await callOnce(gateways[0].adminUrl, { method: 'GET', path: '/metrics' });
    const metrics = parsePrometheus(text);
    const tenants = (name: string) => metrics.get(name)?.samples.map(({ labels }) => labels.tenant);
    assert.deepEqual(tenants('penstock_stored_bytes_total'), ['rival', 'shop']);
    assert.deepEqual(tenants('penstock_storage_refusals_total'), ['rival']);
  });
});
