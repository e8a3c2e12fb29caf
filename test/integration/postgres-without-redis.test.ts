/** Two instances on one PostgreSQL, and no Redis at all. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { type GatewayUnderTest, type Sections, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { metricOf } from '../kit/status-listeners.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

type Two = readonly [GatewayUnderTest, GatewayUnderTest];

async function start(t: TestContext, more: Sections = {}) {
  let status = 'RCVD';
  const bank = await startStubBank(t, ({ method }) => ({
    status: method === 'POST' ? 201 : 200,
    headers: [['Content-Type', 'application/json']],
    body: JSON.stringify({ paymentId: 'a-payment', transactionStatus: status }),
  }));
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: bank.baseUrl },
      production: { baseUrl: `${bank.baseUrl}/production` },
    },
    clients: clientSettings(),
    shaping: { expectedInstances: 2 },
    ...more,
    state: { postgres: await newMigratedPostgres() },
  };
  const instances: Two = [await startGateway(t, sections), await startGateway(t, sections)];
  const key = ['X-API-Key', apiKeyOf('shop')] as const;
  return {
    bank,
    instances,
    setStatus(next: string) {
      status = next;
    },
    pay: (instance: GatewayUnderTest, requestId: string = randomUUID()) =>
      call(instance.url, { ...initiation, requestId, headers: [...initiation.headers, key] }),
    readStatus: (instance: GatewayUnderTest) =>
      call(instance.url, { method: 'GET', path: `${transfersPath}/a-payment/status`, headers: [key] }),
  };
}

describe('two instances on PostgreSQL without Redis', { skip: skipWithoutPostgres }, () => {
  test('are ready, and execute equal requests once', async (t) => {
    const { bank, instances, pay } = await start(t);
    for (const { adminUrl } of instances) {
      const ready = await call(adminUrl, { method: 'GET', path: '/health/ready' });
      assert.equal(ready.status, 200);
      assert.doesNotMatch(ready.text, /Redis/);
    }
    const requestId = randomUUID();
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) => pay(instances[index % 2] ?? instances[0], requestId)),
    );
    const outcomes = replies.map(outcomeOf);
    assert.equal(outcomes.filter((outcome) => outcome === '201').length, 1);
    assert.deepEqual(new Set(outcomes), new Set(['201', '201 replayed']));
    assert.equal(bank.requests.length, 1);
  });

  test('ask the bank for a status that may change, and cache a final one each for itself', async (t) => {
    const { bank, instances, setStatus, pay, readStatus } = await start(t);
    await pay(instances[0]);
    const readsFor = async (status: string) => {
      setStatus(status);
      const before = bank.requests.length;
      for (const instance of [...instances, ...instances])
        assert.equal(jsonOf(await readStatus(instance)).transactionStatus, status);
      return bank.requests.length - before;
    };
    assert.equal(await readsFor('ACTC'), 4);
    await readsFor('CANC'); // the first read of another status is not stored
    assert.equal(await readsFor('CANC'), 0);
  });

  test('follow a switch of the environment within seconds', async (t) => {
    const { instances, pay } = await start(t);
    await switchEnvironment(instances[0], 'production');
    for (const instance of instances)
      await until(10_000, 'the instance has followed', async () => {
        const reply = await pay(instance);
        return reply.header('Penstock-Environment') === 'production';
      });
  });

  test('use their shares of the rate and of the quotas', async (t) => {
    const quota = { rate: '1/min', burst: 20 };
    const clients = clientSettings().map((client) => ({ ...client, quota }));
    const { instances, pay } = await start(t, { clients });
    for (const instance of instances) {
      assert.equal(await metricOf(instance, 'penstock_shaping_alone'), 1);
      const outcomes = [];
      for (let count = 0; count < 12; count += 1) outcomes.push(outcomeOf(await pay(instance)));
      assert.equal(outcomes.filter((outcome) => outcome === '201').length, 10);
      assert.equal(outcomes.filter((outcome) => /QUOTA_EXCEEDED/.test(outcome)).length, 2);
    }
  });
});
