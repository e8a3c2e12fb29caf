/** Two sides of the bank: each request goes to exactly one, and every answer says to which. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf, pairs } from '../kit/call.ts';
import { valuesOf } from '../kit/fields.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';

const startBoth = (t: TestContext) => startTwoEnvironments(t, { clients: [] });

const named = (environment: string) => [
  ...initiation.headers,
  ['Penstock-Environment', environment] as const,
];

describe('in front of two sides of the bank', () => {
  test('a payment goes to the active one if none is named', async (t) => {
    const { sandbox, production, gateway } = await startBoth(t);
    const reply = await call(gateway.url, initiation);
    assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [201, 'sandbox']);
    assert.deepEqual([sandbox.payments.length, production.requests.length], [1, 0]);
  });

  test('a payment goes to the one that is named, which is not told of it', async (t) => {
    const { sandbox, production, gateway } = await startBoth(t);
    const reply = await call(gateway.url, { ...initiation, headers: named('production') });
    assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [201, 'production']);
    assert.match(String(jsonOf(reply).paymentId), /^production-/);
    assert.deepEqual([sandbox.requests.length, production.payments.length], [0, 1]);
    assert.deepEqual(valuesOf(pairs(production.requests[0]?.rawHeaders ?? []), 'Penstock-Environment'), []);
  });

  for (const name of ['staging', 'Production', 'active', '', '__proto__']) {
    test(`"${name}" is refused, and the message says which names there are`, async (t) => {
      const { sandbox, production, gateway } = await startBoth(t);
      const reply = await call(gateway.url, { ...initiation, headers: named(name) });
      assertRefused(reply, 400, 'ENVIRONMENT_UNKNOWN', 'FORMAT_ERROR');
      assert.match(reply.text, /sandbox, production/);
      assert.deepEqual([sandbox.connections, production.connections], [0, 0]);
    });
  }

  test('naming two is refused', async (t) => {
    const { sandbox, production, gateway } = await startBoth(t);
    const headers = [...named('production'), ['Penstock-Environment', 'sandbox'] as const];
    const reply = await call(gateway.url, { ...initiation, headers });
    assertRefused(reply, 400, 'HEADER_MALFORMED', 'FORMAT_ERROR');
    assert.deepEqual([sandbox.connections, production.connections], [0, 0]);
  });

  test('one that is out of reach is never replaced by the other, and the error says which it was', async (t) => {
    const { sandbox, production, gateway } = await startBoth(t);
    await production.stop();
    const headers = [['Penstock-Environment', 'production']] as const;
    const reply = await call(gateway.url, { ...statusRead, headers });
    assertRefused(reply, 502, 'UPSTREAM_UNREACHED', 'SERVICE_UNAVAILABLE');
    assert.equal(reply.header('Penstock-Environment'), 'production');
    assert.equal(sandbox.requests.length, 0);
  });
});
