/** Two banks may assign the same id to two payments; then only the header tells which one is meant. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import type { Call } from '../kit/call.ts';
import { transfersPath } from '../kit/request.ts';
import { startTwoEnvironments, withEnvironmentHeader } from '../kit/two-environments.ts';

const status: Call = { method: 'GET', path: `${transfersPath}/same-id/status` };
const cancellation: Call = { method: 'DELETE', path: `${transfersPath}/same-id` };

async function startWithSameId(t: TestContext) {
  const setup = await startTwoEnvironments(t);
  for (const bank of [setup.sandbox, setup.production]) bank.nextPaymentId('same-id');
  await setup.pay('shop', 'sandbox');
  await setup.pay('shop', 'production');
  return setup;
}

describe('a payment id that exists in both environments', () => {
  test('is refused without the header, whichever environment is active', async (t) => {
    const { send, callCounts, gateway } = await startWithSameId(t);
    for (const active of ['production', 'sandbox']) {
      await switchEnvironment(gateway, active);
      for (const one of [status, cancellation]) {
        const reply = await send('shop', one);
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [409, 'ENVIRONMENT_MISMATCH']);
        assert.match(reply.text, /select one with the header Penstock-Environment/);
      }
    }
    assert.deepEqual(callCounts(), [1, 1]);
  });

  test('is the payment in the requested environment, and the other one is not changed', async (t) => {
    const { send, sandbox, production } = await startWithSameId(t);
    for (const environment of ['sandbox', 'production']) {
      const reply = await send('shop', withEnvironmentHeader(environment, status));
      assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [200, environment]);
    }
    assert.equal((await send('shop', withEnvironmentHeader('production', cancellation))).status, 204);
    assert.equal(production.payments[0]?.transactionStatus, 'CANC');
    assert.notEqual(sandbox.payments[0]?.transactionStatus, 'CANC');
  });

  test('is refused without the header even for a client that may use only one of them', async (t) => {
    const { send, callCounts } = await startWithSameId(t);
    assert.equal((await send('till', status)).status, 409);
    assert.deepEqual(callCounts(), [1, 1]);
    assert.equal((await send('till', withEnvironmentHeader('sandbox', status))).status, 200);
  });

  test('is refused if it exists in one environment and the other one is requested', async (t) => {
    const { send, pay, callCounts } = await startTwoEnvironments(t);
    const id = await pay('shop', 'sandbox');
    const reply = await send(
      'shop',
      withEnvironmentHeader('production', { method: 'GET', path: `${transfersPath}/${id}/status` }),
    );
    assert.deepEqual([reply.status, reply.header('Penstock-Error')], [409, 'ENVIRONMENT_MISMATCH']);
    assert.deepEqual(callCounts(), [1, 0]);
  });
});
