/** Two sides of a bank may give the same id to two payments: then only the header says which one is meant. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import type { Call } from '../kit/call.ts';
import { transfers } from '../kit/request.ts';
import { startTwoEnvironments, withEnvironmentHeader } from '../kit/two-environments.ts';

const status: Call = { method: 'GET', path: `${transfers}/twin/status` };
const cancellation: Call = { method: 'DELETE', path: `${transfers}/twin` };

async function startTwinPayments(t: TestContext) {
  const sides = await startTwoEnvironments(t);
  for (const side of [sides.sandbox, sides.production]) side.nextPaymentId('twin');
  await sides.pay('shop', 'sandbox');
  await sides.pay('shop', 'production');
  return sides;
}

describe('an id that lives in both environments', () => {
  test('is never guessed: without the header nothing is sent, whichever is active', async (t) => {
    const { send, callCounts, gateway } = await startTwinPayments(t);
    for (const active of ['production', 'sandbox']) {
      await switchEnvironment(gateway, active);
      for (const one of [status, cancellation]) {
        const reply = await send('shop', one);
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [409, 'ENVIRONMENT_MISMATCH']);
        assert.match(reply.text, /name the one you mean by Penstock-Environment/);
      }
    }
    assert.deepEqual(callCounts(), [1, 1]);
  });

  test('is what the header says, and the other one stays untouched', async (t) => {
    const { send, sandbox, production } = await startTwinPayments(t);
    for (const environment of ['sandbox', 'production']) {
      const reply = await send('shop', withEnvironmentHeader(environment, status));
      assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [200, environment]);
    }
    assert.equal((await send('shop', withEnvironmentHeader('production', cancellation))).status, 204);
    assert.equal(production.payments[0]?.transactionStatus, 'CANC');
    assert.notEqual(sandbox.payments[0]?.transactionStatus, 'CANC');
  });

  test("is not guessed for a client that may use one of them alone either: it must mean the tenant's other one, too", async (t) => {
    const { send, callCounts } = await startTwinPayments(t);
    assert.equal((await send('till', status)).status, 409);
    assert.deepEqual(callCounts(), [1, 1]);
    assert.equal((await send('till', withEnvironmentHeader('sandbox', status))).status, 200);
  });

  test('once it lives in one only, a header that names another one is refused, and nothing is sent', async (t) => {
    const { send, pay, callCounts } = await startTwoEnvironments(t);
    const id = await pay('shop', 'sandbox');
    const reply = await send(
      'shop',
      withEnvironmentHeader('production', { method: 'GET', path: `${transfers}/${id}/status` }),
    );
    assert.deepEqual([reply.status, reply.header('Penstock-Error')], [409, 'ENVIRONMENT_MISMATCH']);
    assert.deepEqual(callCounts(), [1, 0]);
  });
});
