/** Switches and holds on several instances without messages between them, and while the database is unreachable. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMemoryState } from '../../src/state/memory.ts';
import { callAdminApi, readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { circuitOf } from '../kit/circuits.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { startProxiedPostgres } from '../kit/postgres-proxy.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

/** An instance looks every second; the machine may be busy. */
const maxFollowMs = 10_000;

/** Instances that share a database, and nothing else. */
async function startOn(t: TestContext, postgres: string, count: number) {
  const [sandbox, production] = [
    await startBank(t, { name: 'sandbox' }),
    await startBank(t, { name: 'production' }),
  ];
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl },
      production: { baseUrl: production.baseUrl },
    },
    state: { postgres, redis: 'redis://127.0.0.1:1' }, // replaced by a state in memory
  };
  const instances: GatewayUnderTest[] = [];
  while (instances.length < count) instances.push(await startGateway(t, sections, createMemoryState()));
  return { sandbox, production, instances };
}

/** The active environment as this instance knows it, without a look into the database. */
async function knownEnvironment(instance: GatewayUnderTest): Promise<string | undefined> {
  const metrics = parsePrometheus((await callAdminApi(instance, 'GET', '/metrics')).text);
  return metrics.get('penstock_active_environment')?.samples.find(({ value }) => value === 1)?.labels
    .environment;
}

const environmentPaid = async ({ url }: GatewayUnderTest) =>
  (await call(url, initiation)).header('Penstock-Environment');

const holdOpen = (instance: GatewayUnderTest) =>
  callAdminApi(instance, 'PUT', '/api/circuits/sandbox/write', { hold: 'open', reason: 'a test' });

describe('two instances on one PostgreSQL, without messages between them', {
  skip: skipWithoutPostgres,
  concurrency: true,
}, () => {
  test('send every payment that begins after a switch to the new environment, and soon both know it', async (t) => {
    const { instances, sandbox } = await startOn(t, await newMigratedPostgres(), 2);
    const [one, other] = instances as [GatewayUnderTest, GatewayUnderTest];
    assert.equal(await environmentPaid(other), 'sandbox');
    await switchEnvironment(one, 'production');
    assert.deepEqual(await Promise.all(instances.map(environmentPaid)), ['production', 'production']);
    assert.equal(sandbox.payments.length, 1);
    await until(
      maxFollowMs,
      'the other instance knows it',
      async () => (await knownEnvironment(other)) === 'production',
    );
    await switchEnvironment(other, 'sandbox');
    await until(
      maxFollowMs,
      'the first instance knows it',
      async () => (await knownEnvironment(one)) === 'sandbox',
    );
    const { active, version } = await readAdminApi(one, '/api/environments');
    assert.deepEqual([active, version], ['sandbox', 3]);
  });

  test('both soon follow a hold and its end', async (t) => {
    const { instances } = await startOn(t, await newMigratedPostgres(), 2);
    const [one, other] = instances as [GatewayUnderTest, GatewayUnderTest];
    assert.equal((await holdOpen(one)).status, 200);
    await until(
      maxFollowMs,
      'the other instance shows the hold',
      async () => (await circuitOf(other, 'write')).hold === 'open',
    );
    assert.equal((await call(other.url, initiation)).header('Penstock-Error'), 'CIRCUIT_OPEN');
    const path = '/api/circuits/sandbox/write';
    assert.equal((await callAdminApi(other, 'PUT', path, { hold: null, reason: 'over' })).status, 200);
    await until(
      maxFollowMs,
      'the first instance shows its end',
      async () => (await circuitOf(one, 'write')).hold === null,
    );
  });
});

test('while PostgreSQL is unreachable, a switch and a hold get 503 and change nothing', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const { url, proxy } = await startProxiedPostgres(t);
  const { instances } = await startOn(t, url, 1);
  const [instance] = instances as [GatewayUnderTest];
  const isReady = async () => (await fetch(`${instance.adminUrl}/health/ready`)).status === 200;
  proxy.refuse();
  const change = { environment: 'production', reason: 'a test', confirm: 'production' };
  for (const refused of [
    await callAdminApi(instance, 'PUT', '/api/environments/active', change),
    await holdOpen(instance),
  ])
    assert.deepEqual([refused.status, jsonOf(refused).code], [503, 'STATE_UNAVAILABLE']);
  const { active, version } = await readAdminApi(instance, '/api/environments');
  assert.deepEqual([active, version], ['sandbox', 1], 'the last known one');
  await until(maxFollowMs, 'the instance is not ready', async () => !(await isReady()));

  proxy.accept();
  await until(30_000, 'the instance is ready again', isReady);
  const after = await readAdminApi(instance, '/api/environments');
  assert.deepEqual([after.active, after.version], ['sandbox', 1]);
  assert.equal((await circuitOf(instance, 'write')).hold, null);
  assert.equal(await environmentPaid(instance), 'sandbox');
  await switchEnvironment(instance, 'production');
  assert.equal(await environmentPaid(instance), 'production');
});
