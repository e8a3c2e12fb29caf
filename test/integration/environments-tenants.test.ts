/**
 * Two TPPs behind one gateway. One of them has seen a payment id of the other: in a log, in a link, or by guessing.
 *
 * It must not learn even whether there is such a payment: neither from the answer, nor by anything the bank would do.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import type { Call, Reply } from '../kit/call.ts';
import { but } from '../kit/fields.ts';
import { transfers } from '../kit/request.ts';
import { startTwoEnvironments, withEnvironmentHeader } from '../kit/two-environments.ts';

const operationsOn = (id: string): readonly Call[] => [
  { method: 'GET', path: `${transfers}/${id}` },
  { method: 'GET', path: `${transfers}/${id}/status` },
  { method: 'DELETE', path: `${transfers}/${id}` },
  { method: 'POST', path: `${transfers}/${id}/authorisations`, body: '{}' },
  { method: 'GET', path: `${transfers}/${id}/authorisations` },
  { method: 'GET', path: `${transfers}/${id}/authorisations/sca-1` },
];

/** All that a caller sees but what is new in every answer. */
const seen = ({ status, fields, body }: Reply) => ({
  status,
  fields: but(['x-request-id', 'date'], fields),
  body: body.toString('latin1'),
});

const unknown = 'production-ffffffffffff';

describe("another tenant's payment", () => {
  test('looks byte for byte like one that does not exist, in every operation and environment, and no bank is asked', async (t) => {
    const { send, pay, callCounts, gateway } = await startTwoEnvironments(t);
    for (const active of ['sandbox', 'production'] as const) {
      await switchEnvironment(gateway, active);
      const foreign = await pay('shop');
      const before = callCounts();
      for (const [index, own] of operationsOn(foreign).entries()) {
        const never = operationsOn(unknown)[index] ?? assert.fail();
        for (const named of [undefined, 'sandbox', 'production']) {
          const place = (one: Call) => (named === undefined ? one : withEnvironmentHeader(named, one));
          const [one, other] = [await send('rival', place(own)), await send('rival', place(never))];
          assert.deepEqual(seen(one), seen(other));
          assert.deepEqual([one.status, one.header('Penstock-Error')], [404, 'PAYMENT_UNKNOWN']);
          assert.equal(one.header('Penstock-Environment'), undefined);
        }
      }
      assert.deepEqual(callCounts(), before);
    }
  });

  test('looks so in the other format of errors, too', async (t) => {
    const { send, pay } = await startTwoEnvironments(t);
    const headers = [['Accept', 'application/problem+json']] as const;
    const foreign = await send('rival', {
      method: 'GET',
      path: `${transfers}/${await pay('shop')}`,
      headers,
    });
    const never = await send('rival', { method: 'GET', path: `${transfers}/${unknown}`, headers });
    assert.equal(foreign.header('Content-Type'), 'application/problem+json');
    assert.deepEqual(seen(foreign), seen(never));
  });

  test('stays what it was, and its own tenant still gets it', async (t) => {
    const { send, pay, sandbox } = await startTwoEnvironments(t);
    const id = await pay('shop');
    const before = sandbox.payments;
    for (const one of operationsOn(id)) await send('rival', one);
    assert.deepEqual(sandbox.payments, before);
    assert.equal((await send('shop', { method: 'GET', path: `${transfers}/${id}` })).status, 200);
  });

  test('with the same id as one of its own is never mixed up with it', async (t) => {
    const { send, pay, sandbox, production } = await startTwoEnvironments(t);
    sandbox.nextPaymentId('twin');
    production.nextPaymentId('twin');
    await pay('shop', 'sandbox');
    await pay('rival', 'production');
    for (const [client, environment] of [
      ['shop', 'sandbox'],
      ['rival', 'production'],
    ] as const) {
      const reply = await send(client, { method: 'GET', path: `${transfers}/twin/status` });
      assert.deepEqual([reply.status, reply.header('Penstock-Environment')], [200, environment]);
    }
    const wrong = await send(
      'rival',
      withEnvironmentHeader('sandbox', { method: 'GET', path: `${transfers}/twin/status` }),
    );
    assert.equal(wrong.status, 409);
    assert.ok(!wrong.text.includes('shop'));
  });
});
