/** An operator switches the active environment: with pre-flight, confirmation and audit record. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAdminApi, readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { jsonOf } from '../kit/call.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, startTwoEnvironments } from '../kit/two-environments.ts';

const active = '/api/environments/active';

describe('an operator', () => {
  test('sees both environments and which one is active, also after a switch', async (t) => {
    const { gateway, sandbox, production } = await startTwoEnvironments(t);
    const { environments, ...rest } = await readAdminApi(gateway, '/api/environments');
    assert.deepEqual(rest, { active: 'sandbox', version: 1 });
    assert.ok(Array.isArray(environments));
    assert.deepEqual(
      environments.map(({ name, baseUrl, standardVersion }) => [name, baseUrl, standardVersion]),
      [
        ['sandbox', sandbox.baseUrl, '1.3.11'],
        ['production', production.baseUrl, '1.3.6'],
      ],
    );
    await switchEnvironment(gateway, 'production');
    assert.equal((await readAdminApi(gateway, '/api/environments')).active, 'production');
  });

  test('sees the active environment in the metrics', async (t) => {
    const { gateway } = await startTwoEnvironments(t);
    const activeIn = async () => {
      const metrics = parsePrometheus((await callAdminApi(gateway, 'GET', '/metrics')).text);
      return metrics
        .get('penstock_active_environment')
        ?.samples.map(({ labels, value }) => [labels.environment, value]);
    };
    assert.deepEqual(await activeIn(), [
      ['sandbox', 1],
      ['production', 0],
    ]);
    await switchEnvironment(gateway, 'production');
    assert.deepEqual(await activeIn(), [
      ['sandbox', 0],
      ['production', 1],
    ]);
  });

  test('cannot switch to an environment that is down, sees the reason, and can force the switch', async (t) => {
    const { gateway, production, pay } = await startTwoEnvironments(t);
    await production.stop();
    const order = { environment: 'production', reason: 'go-live', confirm: 'production' };

    const refused = await callAdminApi(gateway, 'PUT', active, order);
    assert.equal(refused.status, 409);
    assert.deepEqual(jsonOf(refused), {
      error: 'Not switched: the pre-flight failed.',
      preflight: { ok: false, steps: [{ step: 'tcp', ok: false, detail: 'ECONNREFUSED' }] },
    });
    assert.match(await pay('shop'), /^sandbox-/);

    assert.equal((await callAdminApi(gateway, 'PUT', active, { ...order, force: true })).status, 200);
    assert.equal((await readAdminApi(gateway, '/api/environments')).active, 'production');
  });

  for (const status of [401, 403]) {
    test(`cannot switch to an environment that refuses the gateway with ${status} without force, unless that is expected`, async (t) => {
      const bank = await startStubBank(t, () => ({ status }));
      const startWith = async (probeExpects: readonly number[]) => {
        const { gateway } = await startTwoEnvironments(t, {
          environments: {
            active: 'sandbox',
            sandbox: { baseUrl: `${bank.baseUrl}/sandbox` },
            production: { baseUrl: bank.baseUrl, probeExpects },
          },
        });
        return async (force: boolean) => {
          const order = { environment: 'production', reason: 'go-live', confirm: 'production', force };
          const reply = await callAdminApi(gateway, 'PUT', active, order);
          return { status: reply.status, preflight: jsonOf(reply).preflight };
        };
      };
      const switchUnexpected = await startWith([]);
      const refused = await switchUnexpected(false);
      assert.equal(refused.status, 409);
      const [, step] = Object(refused.preflight).steps;
      assert.deepEqual([step.step, step.ok, step.detail], ['answer', false, `status ${status}`]);
      assert.equal((await switchUnexpected(true)).status, 200);

      const switchExpected = await startWith([status]);
      assert.equal((await switchExpected(false)).status, 200);
    });
  }

  test('can switch to an environment that does not know probePath, and sees a remark', async (t) => {
    const { gateway } = await startTwoEnvironments(t); // the simulated bank answers 404
    const path = '/api/environments/production/preflight';
    const { ok, steps } = jsonOf(await callAdminApi(gateway, 'POST', path));
    assert.ok(Array.isArray(steps));
    assert.deepEqual([ok, steps.at(-1).detail], [true, 'status 404']);
    assert.match(steps.at(-1).remark, /does not know probePath/);
    await switchEnvironment(gateway, 'production');
  });

  test('cannot switch to production without confirmation, and no pre-flight runs', async (t) => {
    const { gateway, production } = await startTwoEnvironments(t);
    for (const confirm of [{}, { confirm: 'PRODUCTION' }, { confirm: '' }, { confirm: 'production ' }]) {
      const order = { environment: 'production', reason: 'go-live', force: true, ...confirm };
      assert.equal((await callAdminApi(gateway, 'PUT', active, order)).status, 409);
    }
    assert.equal(production.connections, 0);
    assert.equal((await readAdminApi(gateway, '/api/environments')).version, 1);
  });

  test('finds every switch in the audit log and in the log, including refused ones', async (t) => {
    const { gateway, production } = await startTwoEnvironments(t);
    await callAdminApi(gateway, 'PUT', active, { environment: 'production', reason: 'a slip' });
    await switchEnvironment(gateway, 'production');
    await switchEnvironment(gateway, 'sandbox');
    await production.stop();
    await callAdminApi(gateway, 'PUT', active, {
      environment: 'production',
      reason: 'broken',
      confirm: 'production',
    });
    await callAdminApi(gateway, 'PUT', active, {
      environment: 'production',
      reason: 'so be it',
      confirm: 'production',
      force: true,
    });

    const records: unknown = JSON.parse((await callAdminApi(gateway, 'GET', '/api/audit')).text);
    assert.ok(Array.isArray(records));
    const facts = records.map(({ who, outcome, details }) => [
      who,
      outcome,
      details.reason,
      details.from,
      details.environment,
    ]);
    assert.deepEqual(facts.reverse(), [
      ['admin', 'refused', 'a slip', undefined, 'production'],
      ['admin', 'switched', 'a test', 'sandbox', 'production'],
      ['admin', 'switched', 'a test', 'production', 'sandbox'],
      ['admin', 'refused', 'broken', undefined, 'production'],
      ['admin', 'forced', 'so be it', 'sandbox', 'production'],
    ]);
    assert.deepEqual(await readAdminApi(gateway, '/api/audit/verify'), { records: 5 });
    const lines = gateway.logLines
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message === 'audit');
    assert.deepEqual(
      lines.map(({ outcome }) => outcome),
      ['refused', 'switched', 'switched', 'refused', 'forced'],
    );
  });

  test('sees the configuration without its secrets', async (t) => {
    const operators = [{ name: 'olga', tokenSha256: 'ab'.repeat(32), role: 'read' }];
    const { gateway } = await startTwoEnvironments(t, { admin: { operators } });
    const { text } = await callAdminApi(gateway, 'GET', '/api/config');
    const { admin, clients, environments } = JSON.parse(text);
    assert.deepEqual(admin.operators, [{ name: 'olga', tokenSha256: '***', role: 'read' }]);
    assert.deepEqual(clients[1], {
      name: 'till',
      tenant: 'shop',
      apiKeySha256: '***',
      environments: ['sandbox'],
    });
    assert.equal(environments.active, 'sandbox');
    assert.doesNotMatch(text, /[0-9a-f]{64}/);
    assert.ok(!text.includes(apiKeyOf('shop')));
  });
});
