/** Equal requests, and equal ids of two tenants, reach several instances on one PostgreSQL at once; a switch during payments. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

async function start(t: TestContext, count: number) {
  const sandbox = await startBank(t, { name: 'sandbox' });
  const production = await startBank(t, { name: 'production' });
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl },
      production: { baseUrl: production.baseUrl },
    },
    clients: clientSettings(),
    state: {
      ...{ postgres: await newMigratedPostgres(), redis: await redis() },
      prefix: `test-${randomUUID()}:`,
    },
    shaping: { expectedInstances: count },
    idempotency: { wait: '5s' },
  };
  const instances: GatewayUnderTest[] = [];
  for (let index = 0; index < count; index++) instances.push(await startGateway(t, sections));
  const instanceOf = (number: number) => instances[number % count] ?? assert.fail();
  const pay = (number: number, client: ClientName, requestId: string) =>
    call(instanceOf(number).url, {
      ...initiation,
      requestId,
      headers: [...initiation.headers, ['X-API-Key', apiKeyOf(client)]],
    });
  return { sandbox, production, instances, pay };
}

for (const count of [2, 3])
  describe(`${count} instances on one PostgreSQL`, { skip: skipWithoutPostgres || skipWithoutRedis }, () => {
    test('execute 100 equal requests once, and give all of them the same answer', async (t) => {
      const { sandbox, pay } = await start(t, count);
      const requestId = randomUUID();
      const spelled = (number: number) => (number % 3 === 0 ? requestId.toUpperCase() : requestId);
      const replies = await Promise.all(
        Array.from({ length: 100 }, (_, number) => pay(number, 'shop', spelled(number))),
      );
      assert.equal(sandbox.payments.length, 1);
      assert.equal(new Set(replies.map(({ text }) => text)).size, 1);
      const outcomes = replies.map(outcomeOf);
      assert.equal(outcomes.filter((outcome) => outcome === '201').length, 1);
      assert.deepEqual(new Set(outcomes), new Set(['201', '201 replayed']));
    });

    test('execute the equal requests of two tenants once for each of them', async (t) => {
      const { sandbox, pay } = await start(t, count);
      const requestIds = Array.from({ length: 20 }, () => randomUUID());
      const replies = await Promise.all(
        requestIds.flatMap((requestId) =>
          (['shop', 'rival'] as const).flatMap((client) =>
            [requestId, requestId.toUpperCase(), requestId].map(async (id, number) => {
              const reply = await pay(number, client, id);
              return { client, requestId, outcome: outcomeOf(reply), paymentId: jsonOf(reply).paymentId };
            }),
          ),
        ),
      );
      for (const requestId of requestIds) {
        const of = (client: ClientName) =>
          replies.filter((one) => one.requestId === requestId && one.client === client);
        const ids = {
          shop: of('shop').map((one) => one.paymentId),
          rival: of('rival').map((one) => one.paymentId),
        };
        assert.equal(new Set(ids.shop).size, 1, JSON.stringify(of('shop')));
        assert.equal(new Set(ids.rival).size, 1, JSON.stringify(of('rival')));
        assert.notEqual(ids.shop[0], ids.rival[0]);
      }
      assert.equal(sandbox.payments.length, 2 * requestIds.length);
    });

    test('keep each of 200 payments in one environment while it is switched, and follow within seconds', async (t) => {
      const { sandbox, production, instances, pay } = await start(t, count);
      const requestIds = Array.from({ length: 200 }, () => randomUUID());
      const replies = requestIds.map(async (requestId, number) => {
        await until(
          20_000,
          'it is its turn',
          () => sandbox.payments.length + production.payments.length >= number - 20,
        );
        return pay(number, 'shop', requestId);
      });
      await until(20_000, 'some are paid', () => sandbox.payments.length > 50);
      await switchEnvironment(instances[0] ?? assert.fail(), 'production');
      const first = await Promise.all(replies);
      assert.deepEqual(new Set(first.map(outcomeOf)), new Set(['201']));
      const environments = first.map((reply) => reply.header('Penstock-Environment'));
      const repeated = await Promise.all(
        requestIds.map((requestId, number) => pay(number + 1, 'shop', requestId)),
      );
      assert.deepEqual(new Set(repeated.map(outcomeOf)), new Set(['201 replayed']));
      assert.deepEqual(
        repeated.map((reply) => reply.header('Penstock-Environment')),
        environments,
      );
      assert.deepEqual(
        [sandbox.payments.length, production.payments.length],
        ['sandbox', 'production'].map((name) => environments.filter((one) => one === name).length),
      );
      for (const [number] of instances.entries())
        await until(10_000, 'the instance has followed', async () => {
          const reply = await pay(number, 'shop', randomUUID());
          return reply.header('Penstock-Environment') === 'production';
        });
    });
  });
