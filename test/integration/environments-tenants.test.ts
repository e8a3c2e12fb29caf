/**
 * Isolation of two tenants of one gateway. One tenant has a payment id of the other: from a log, from a link, or by guessing.
 *
 * This tenant must not be able to find out whether the payment exists. The gateway does not call a bank for such a request.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import type { Call } from '../kit/call.ts';
import { comparableResponse } from '../kit/comparable-response.ts';
import { transfersPath } from '../kit/request.ts';
import { startTwoEnvironments, withEnvironmentHeader } from '../kit/two-environments.ts';

const operationsOn = (id: string): readonly Call[] => [
  { method: 'GET', path: `${transfersPath}/${id}` },
  { method: 'GET', path: `${transfersPath}/${id}/status` },
  { method: 'DELETE', path: `${transfersPath}/${id}` },
  { method: 'POST', path: `${transfersPath}/${id}/authorisations`, body: '{}' },
  { method: 'GET', path: `${transfersPath}/${id}/authorisations` },
  { method: 'GET', path: `${transfersPath}/${id}/authorisations/sca-1` },
];

const unknown = 'production-ffffffffffff';

describe("another tenant's payment", () => {
  test('is reported in the same way as a payment that does not exist, for every operation and environment, without a call to a bank', async (t) => {
    const { send, pay, callCounts, gateway } = await startTwoEnvironments(t);
    for (const active of ['sandbox', 'production'] as const) {
      await switchEnvironment(gateway, active);
      const foreign = await pay('shop');
      const before = callCounts();
      for (const [index, own] of operationsOn(foreign).entries()) {
        const never = operationsOn(unknown)[index] ?? assert.fail();
        for (const named of [undefined, 'sandbox', 'production']) {
          const withHeader = (one: Call) => (named === undefined ? one : withEnvironmentHeader(named, one));
          const [one, other] = [await send('rival', withHeader(own)), await send('rival', withHeader(never))];
          assert.deepEqual(comparableResponse(one), comparableResponse(other));
          assert.deepEqual([one.status, one.header('Penstock-Error')], [404, 'PAYMENT_UNKNOWN']);
          assert.equal(one.header('Penstock-Environment'), undefined);
        }
      }
      assert.deepEqual(callCounts(), before);
    }
  });

  test('is reported in the same way as a payment that does not exist in the format problem+json', async (t) => {
    const { send, pay } = await startTwoEnvironments(t);
    const headers = [['Accept', 'application/problem+json']] as const;
    const foreign = await send('rival', {
      method: 'GET',
      path: `${transfersPath}/${await pay('shop')}`,
      headers,
    });
    const never = await send('rival', { method: 'GET', path: `${transfersPath}/${unknown}`, headers });
    assert.equal(foreign.header('Content-Type'), 'application/problem+json');
    assert.deepEqual(comparableResponse(foreign), comparableResponse(never));
  });

  test('is not changed by requests of another tenant, and its owner can still read it', async (t) => {
    const { send, pay, sandbox } = await startTwoEnvironments(t);
    const id = await pay('shop');
    const before = sandbox.payments;
    for (const one of operationsOn(id)) await send('rival', one);
    assert.deepEqual(sandbox.payments, before);
    assert.equal((await send('shop', { method: 'GET', path: `${transfersPath}/${id}` })).status, 200);
  });

  test('is not confused with a payment of the client that has the same id in another environment', async (t) => {
    const { send, pay, sandbox, production } = await startTwoEnvironments(t);
    sandbox.nextPaymentId('same-id');
    production.nextPaymentId('same-id');
    await pay('shop', 'sandbox');
    await pay('rival', 'production');
    for (const [client, environment] of [
      ['shop', 'sandbox'],
      ['rival', 'production'],
    ] as const) {
      const reply = await send(client, { method: 'GET', path: `${transfersPath}/same-id/status` });
      assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [200, environment]);
    }
    const wrong = await send(
      'rival',
      withEnvironmentHeader('sandbox', { method: 'GET', path: `${transfersPath}/same-id/status` }),
    );
    assert.equal(wrong.status, 409);
    assert.ok(!wrong.text.includes('shop'));
  });
});
