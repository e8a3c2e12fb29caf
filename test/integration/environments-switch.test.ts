/** A switch between sandbox and production: new payments follow it, and those that live stay where they were born. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Call, jsonOf } from '../kit/call.ts';
import { publicUrl } from '../kit/gateway.ts';
import { initiation, transfers } from '../kit/request.ts';
import { startTwoEnvironments, type TwoEnvironments } from '../kit/two-environments.ts';

/** Every operation on a payment that there is, the last of which cancels it. */
const operationsOn = (id: string): readonly Call[] => [
  { method: 'GET', path: `${transfers}/${id}` },
  { method: 'GET', path: `${transfers}/${id}/status` },
  {
    method: 'POST',
    path: `${transfers}/${id}/authorisations`,
    headers: [['Content-Type', 'application/json']],
    body: '{}',
  },
  { method: 'GET', path: `${transfers}/${id}/authorisations` },
  { method: 'DELETE', path: `${transfers}/${id}` },
];

/** Asks for everything about a payment, and proves that only its side of the bank was asked. */
async function assertLivesIn(
  sides: TwoEnvironments,
  id: string,
  environment: 'sandbox' | 'production',
): Promise<void> {
  for (const operation of operationsOn(id)) {
    const before = sides.callCounts();
    const reply = await sides.send('shop', operation);
    assert.ok(reply.status < 300, `${operation.method} ${operation.path}: ${reply.text}`);
    assert.equal(reply.header('Penstock-Environment'), environment);
    const came = sides.callCounts().map((count, index) => count - (before[index] ?? 0));
    assert.deepEqual(came, environment === 'sandbox' ? [1, 0] : [0, 1]);
  }
}

describe('after a switch', () => {
  test('a payment born in the sandbox stays there with all that is asked about it, and new ones go to production', async (t) => {
    const sides = await startTwoEnvironments(t);
    const old = await sides.pay('shop');
    await switchEnvironment(sides.gateway, 'production');
    const fresh = await sides.pay('shop');
    assert.deepEqual([old.split('-')[0], fresh.split('-')[0]], ['sandbox', 'production']);

    await assertLivesIn(sides, old, 'sandbox');
    await assertLivesIn(sides, fresh, 'production');
  });

  test('and back again every payment stays where it was born', async (t) => {
    const sides = await startTwoEnvironments(t);
    const ids = [await sides.pay('shop')];
    for (const environment of ['production', 'sandbox', 'production']) {
      await switchEnvironment(sides.gateway, environment);
      ids.push(await sides.pay('shop'));
    }
    for (const id of ids) await assertLivesIn(sides, id, id.startsWith('sandbox') ? 'sandbox' : 'production');
    assert.deepEqual(
      ids.map((id) => id.split('-')[0]),
      ['sandbox', 'production', 'sandbox', 'production'],
    );
    assert.equal((await readAdminApi(sides.gateway, '/api/environments')).version, 4);
  });

  test('the links of every payment lead through the gateway to its own side', async (t) => {
    const sides = await startTwoEnvironments(t);
    for (const environment of ['sandbox', 'production'] as const) {
      const reply = await sides.send('shop', initiation);
      const { _links: links } = jsonOf(reply) as { _links: Readonly<Record<string, { href: string }>> };
      const status = links.status?.href ?? '';
      assert.ok(status.startsWith(`${publicUrl}/berlingroup/v1/`), status);
      await switchEnvironment(sides.gateway, environment === 'sandbox' ? 'production' : 'sandbox');
      const followed = await sides.send('shop', { method: 'GET', path: status.slice(publicUrl.length) });
      assert.deepEqual([followed.status, followed.header('Penstock-Environment')], [200, environment]);
    }
  });
});

describe('during a switch', () => {
  test('fifty payments on their way end where they began, and none is lost or made twice', async (t) => {
    const sides = await startTwoEnvironments(t);
    sides.sandbox.injectFault({ name: 'latency', ms: 300 }, { times: 50 });
    const running = Array.from({ length: 50 }, () => sides.pay('shop'));
    await sides.sandbox.waitUntil(() => sides.callCounts()[0] === 50, 15_000);
    await switchEnvironment(sides.gateway, 'production');
    const fresh = await sides.pay('shop');

    const ids = await Promise.all(running);
    assert.equal(new Set(ids).size, 50);
    assert.ok(ids.every((id) => id.startsWith('sandbox')));
    assert.deepEqual([sides.sandbox.payments.length, sides.production.payments.length], [50, 1]);
    assert.ok(fresh.startsWith('production'));
    for (const id of [...ids.slice(0, 5), fresh]) {
      const { status, header } = await sides.send('shop', {
        method: 'GET',
        path: `${transfers}/${id}/status`,
      });
      assert.deepEqual([status, header('Penstock-Environment')], [200, id.split('-')[0]]);
    }
  });
});
