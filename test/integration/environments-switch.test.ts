/** A switch between sandbox and production affects new payments; existing payments stay in their environment. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Call, jsonOf } from '../kit/call.ts';
import { publicUrl } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { startTwoEnvironments, type TwoEnvironments } from '../kit/two-environments.ts';

/** All operations on a payment; the last one cancels it. */
const operationsOn = (id: string): readonly Call[] => [
  { method: 'GET', path: `${transfersPath}/${id}` },
  { method: 'GET', path: `${transfersPath}/${id}/status` },
  {
    method: 'POST',
    path: `${transfersPath}/${id}/authorisations`,
    headers: [['Content-Type', 'application/json']],
    body: '{}',
  },
  { method: 'GET', path: `${transfersPath}/${id}/authorisations` },
  { method: 'DELETE', path: `${transfersPath}/${id}` },
];

/** Executes all operations on a payment, and asserts that only the bank of this environment was called. */
async function assertIsServedBy(
  setup: TwoEnvironments,
  id: string,
  environment: 'sandbox' | 'production',
): Promise<void> {
  for (const operation of operationsOn(id)) {
    const before = setup.callCounts();
    const reply = await setup.send('shop', operation);
    assert.ok(reply.status < 300, `${operation.method} ${operation.path}: ${reply.text}`);
    assert.equal(reply.header('Penstock-Environment'), environment);
    const came = setup.callCounts().map((count, index) => count - (before[index] ?? 0));
    assert.deepEqual(came, environment === 'sandbox' ? [1, 0] : [0, 1]);
  }
}

describe('payments after a switch', () => {
  test('stay in the sandbox if they were initiated there, and new ones go to production', async (t) => {
    const setup = await startTwoEnvironments(t);
    const old = await setup.pay('shop');
    await switchEnvironment(setup.gateway, 'production');
    const recent = await setup.pay('shop');
    assert.deepEqual([old.split('-')[0], recent.split('-')[0]], ['sandbox', 'production']);

    await assertIsServedBy(setup, old, 'sandbox');
    await assertIsServedBy(setup, recent, 'production');
  });

  test('stay in their environment after several switches', async (t) => {
    const setup = await startTwoEnvironments(t);
    const ids = [await setup.pay('shop')];
    for (const environment of ['production', 'sandbox', 'production']) {
      await switchEnvironment(setup.gateway, environment);
      ids.push(await setup.pay('shop'));
    }
    for (const id of ids)
      await assertIsServedBy(setup, id, id.startsWith('sandbox') ? 'sandbox' : 'production');
    assert.deepEqual(
      ids.map((id) => id.split('-')[0]),
      ['sandbox', 'production', 'sandbox', 'production'],
    );
    assert.equal((await readAdminApi(setup.gateway, '/api/environments')).version, 4);
  });

  test('have links that lead through the gateway to their own environment', async (t) => {
    const setup = await startTwoEnvironments(t);
    for (const environment of ['sandbox', 'production'] as const) {
      const reply = await setup.send('shop', initiation);
      const { _links: links } = jsonOf(reply) as { _links: Readonly<Record<string, { href: string }>> };
      const status = links.status?.href ?? '';
      assert.ok(status.startsWith(`${publicUrl}/berlingroup/v1/`), status);
      await switchEnvironment(setup.gateway, environment === 'sandbox' ? 'production' : 'sandbox');
      const followed = await setup.send('shop', { method: 'GET', path: status.slice(publicUrl.length) });
      assert.deepEqual([followed.status, followed.header('Penstock-Environment')], [200, environment]);
    }
  });
});

describe('payments during a switch', () => {
  test('finish in the environment where they began, and none is lost or made twice', async (t) => {
    const setup = await startTwoEnvironments(t);
    setup.sandbox.injectFault({ name: 'latency', ms: 300 }, { times: 50 });
    const running = Array.from({ length: 50 }, () => setup.pay('shop'));
    await setup.sandbox.waitUntil(() => setup.callCounts()[0] === 50, 15_000);
    await switchEnvironment(setup.gateway, 'production');
    const recent = await setup.pay('shop');

    const ids = await Promise.all(running);
    assert.equal(new Set(ids).size, 50);
    assert.ok(ids.every((id) => id.startsWith('sandbox')));
    assert.deepEqual([setup.sandbox.payments.length, setup.production.payments.length], [50, 1]);
    assert.ok(recent.startsWith('production'));
    for (const id of [...ids.slice(0, 5), recent]) {
      const { status, header } = await setup.send('shop', {
        method: 'GET',
        path: `${transfersPath}/${id}/status`,
      });
      assert.deepEqual([status, header('Penstock-Environment')], [200, id.split('-')[0]]);
    }
  });
});
