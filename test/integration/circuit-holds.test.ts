/** Operators hold circuits open or closed: on all instances, for a limited time, across restarts, with audit records. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { ask, circuitOf, loggedCircuitChanges } from '../kit/circuits.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { startInstances } from '../kit/instances.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { assertRefused } from '../kit/refusal.ts';
import { until } from '../kit/within.ts';

const path = '/api/circuits/sandbox/write';
const circuit = { minimumCalls: 3, openFor: '100ms' };

/** The value of a sample of the lane `write` with this label. */
async function sampleOf(
  listener: Parameters<typeof callAdminApi>[0],
  metric: string,
  label: Readonly<Record<string, string>>,
): Promise<number | undefined> {
  const metrics = parsePrometheus((await callAdminApi(listener, 'GET', '/metrics')).text);
  const wanted = Object.entries({ lane: 'write', ...label });
  return metrics
    .get(metric)
    ?.samples.find(({ labels }) => wanted.every(([name, value]) => labels[name] === value))?.value;
}

describe('a hold on a circuit', { skip: skipWithoutRedis, concurrency: true }, () => {
  test('open stops all calls of the lane on both instances until it is lifted, and is recorded in the audit log', async (t) => {
    const bank = await startBank(t);
    const [here, there] = await startInstances(t, bank, await sharedRedisUrl(t), { circuit });
    const held = await callAdminApi(here, 'PUT', path, {
      hold: 'open',
      reason: 'the bank has called',
      for: '10min',
    });
    assert.equal(held.status, 200);
    await until(
      2_500,
      'the other instance shows the hold',
      async () => (await circuitOf(there, 'write')).hold === 'open',
    );

    for (const instance of [here, there]) {
      const { state, hold, reason, until: end } = await circuitOf(instance, 'write');
      assert.deepEqual([state, hold, reason], ['closed', 'open', 'the bank has called']);
      assert.equal(await sampleOf(instance, 'penstock_circuit_state', { state: 'closed' }), 0);
      assert.equal(await sampleOf(instance, 'penstock_circuit_state', { state: 'open' }), 1);
      assert.equal(await sampleOf(instance, 'penstock_circuit_held', { as: 'open' }), 1);
      assert.equal(await sampleOf(instance, 'penstock_circuit_held', { as: 'closed' }), 0);
      assert.ok(Math.abs(Date.parse(end ?? '') - Date.now() - 600_000) < 20_000, `${end}`);
      const refused = await ask(instance, 'write');
      assertRefused(refused, 503, 'CIRCUIT_OPEN', 'SERVICE_UNAVAILABLE');
      assert.equal(refused.header('Retry-After'), '60');
      assert.match(refused.text, /operators of the gateway hold the circuit open.* nothing was sent/);
      assert.equal((await ask(instance, 'read')).header('Penstock-Error'), undefined, 'other lanes continue');
    }
    assert.equal(bank.requests.filter(({ method }) => method === 'POST').length, 0);

    assert.equal((await callAdminApi(there, 'PUT', path, { hold: null, reason: 'all is well' })).status, 200);
    await until(
      2_500,
      'the first instance shows its end',
      async () => (await circuitOf(here, 'write')).hold === null,
    );
    assert.equal((await ask(here, 'write')).status, 201);
    assert.equal(await sampleOf(here, 'penstock_circuit_state', { state: 'closed' }), 1);
    assert.equal(await sampleOf(here, 'penstock_circuit_held', { as: 'open' }), 0);

    const records = JSON.parse((await callAdminApi(here, 'GET', '/api/audit')).text);
    const auditLog = JSON.stringify(records);
    for (const part of [
      'hold circuit',
      'the bank has called',
      'all is well',
      '"lane":"write"',
      '"outcome":"done"',
    ])
      assert.ok(auditLog.includes(part), `${part} in ${auditLog}`);
  });

  test('closed lets all calls through on both instances, although the bank fails', async (t) => {
    const bank = await startBank(t);
    const instances = await startInstances(t, bank, await sharedRedisUrl(t), { circuit });
    await callAdminApi(instances[0], 'PUT', path, { hold: 'closed', reason: 'a test run', for: '1min' });
    await until(
      2_500,
      'both instances show the hold',
      async () => (await circuitOf(instances[1], 'write')).hold === 'closed',
    );
    bank.injectFault({ name: 'status', status: 500 });
    for (const instance of instances) {
      for (let calls = 0; calls < 10; calls++) assert.equal((await ask(instance, 'write')).status, 500);
      assert.deepEqual(loggedCircuitChanges(instance), []);
    }
  });

  test('ends when its time has passed', async (t) => {
    const bank = await startBank(t);
    const [here, there] = await startInstances(t, bank, await sharedRedisUrl(t), { circuit });
    const held = await callAdminApi(here, 'PUT', path, {
      hold: 'open',
      reason: 'for a moment',
      for: '4s',
    });
    assert.equal(held.status, 200, held.text);
    assert.equal((await ask(here, 'write')).header('Penstock-Error'), 'CIRCUIT_OPEN');
    for (const instance of [here, there]) {
      await until(
        30_000,
        'the hold has ended',
        async () => (await circuitOf(instance, 'write')).hold === null,
      );
      assert.equal((await ask(instance, 'write')).status, 201);
    }
  });

  test('survives the crash of an instance with a SQLite file, and penstock circuits shows it', async (t) => {
    const bank = await startBank(t);
    const state = { file: join(temporaryFolder(t), 'penstock.db') };
    const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, state };
    const first = await startGatewayProcess(t, sections);
    const held = await callAdminApi(first, 'PUT', path, {
      hold: 'open',
      reason: 'maintenance',
      for: '10min',
    });
    assert.equal(held.status, 200, held.text);
    first.command.kill('SIGKILL');
    await first.command.exitCode();

    const second = await startGatewayProcess(t, sections);
    assert.equal((await ask(second, 'write')).header('Penstock-Error'), 'CIRCUIT_OPEN');
    assert.equal(bank.requests.length, 0);

    const command = second.run('circuits');
    assert.equal(await command.exitCode(), 0, command.stderr());
    const lines = command.stdout().split('\n');
    assert.match(lines[0] ?? '', /^sandbox {6}write {3}closed {5}held open until \d{4}-.*Z maintenance$/);
    assert.deepEqual(lines.slice(1), ['sandbox      read    closed', 'sandbox      status  closed', '']);
  });

  for (const [what, wrong] of [
    ['without a reason', { hold: 'open' }],
    ['for too long', { hold: 'open', reason: 'a slip', for: '25h' }],
    ['as something else', { hold: 'shut', reason: 'a slip' }],
  ] as const) {
    test(`is refused ${what}, and changes nothing`, async (t) => {
      const bank = await startBank(t);
      const [here] = await startInstances(t, bank, await sharedRedisUrl(t), { circuit });
      assert.equal((await callAdminApi(here, 'PUT', path, wrong)).status, 400);
      assert.equal((await circuitOf(here, 'write')).hold, null);
    });
  }
});
