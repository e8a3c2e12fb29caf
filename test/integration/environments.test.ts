/** Two environments: each request goes to exactly one of them, and the response names it. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf, pairs } from '../kit/call.ts';
import { valuesOf } from '../kit/fields.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';

const startWithoutClients = (t: TestContext) => startTwoEnvironments(t, { clients: [] });

const headersWith = (environment: string) => [
  ...initiation.headers,
  ['Penstock-Environment', environment] as const,
];

describe('the choice between two environments', () => {
  test('is the active one for a payment if none is requested', async (t) => {
    const { sandbox, production, gateway } = await startWithoutClients(t);
    const reply = await call(gateway.url, initiation);
    assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [201, 'sandbox']);
    assert.deepEqual([sandbox.payments.length, production.requests.length], [1, 0]);
  });

  test('is the requested one for a payment, and the header is not sent to the bank', async (t) => {
    const { sandbox, production, gateway } = await startWithoutClients(t);
    const reply = await call(gateway.url, { ...initiation, headers: headersWith('production') });
    assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [201, 'production']);
    assert.match(String(jsonOf(reply).paymentId), /^production-/);
    assert.deepEqual([sandbox.requests.length, production.payments.length], [0, 1]);
    assert.deepEqual(valuesOf(pairs(production.requests[0]?.rawHeaders ?? []), 'Penstock-Environment'), []);
  });

  for (const name of ['staging', 'Production', 'active', '', '__proto__']) {
    test(`fails for the unknown name "${name}" with the list of known names`, async (t) => {
      const { sandbox, production, gateway } = await startWithoutClients(t);
      const reply = await call(gateway.url, { ...initiation, headers: headersWith(name) });
      assertRefused(reply, 400, 'ENVIRONMENT_UNKNOWN', 'FORMAT_ERROR');
      assert.match(reply.text, /sandbox, production/);
      assert.deepEqual([sandbox.connections, production.connections], [0, 0]);
    });
  }

  test('fails if two environments are requested', async (t) => {
    const { sandbox, production, gateway } = await startWithoutClients(t);
    const headers = [...headersWith('production'), ['Penstock-Environment', 'sandbox'] as const];
    const reply = await call(gateway.url, { ...initiation, headers });
    assertRefused(reply, 400, 'HEADER_MALFORMED', 'FORMAT_ERROR');
    assert.deepEqual([sandbox.connections, production.connections], [0, 0]);
  });

  test('never falls back to the other environment if a bank is unreachable', async (t) => {
    const { sandbox, production, gateway } = await startWithoutClients(t);
    await production.stop();
    const headers = [['Penstock-Environment', 'production']] as const;
    const reply = await call(gateway.url, { ...statusRead, headers });
    assertRefused(reply, 502, 'UPSTREAM_UNREACHED', 'SERVICE_UNAVAILABLE');
    assert.equal(reply.header('Penstock-Environment'), 'production');
    assert.equal(sandbox.requests.length, 0);
  });
});
