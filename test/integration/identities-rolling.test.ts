/** Instances with the old and the new configuration at the same time: no request is paid by both, and none shows payments of others. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { createFaultyDatabase, type FaultyDatabase } from '../kit/faulty-database.ts';
import { type GatewayUnderTest, startBank } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import {
  ask,
  change,
  client,
  idOf,
  isReplay,
  pay,
  type SharedDatabase,
  shareDatabase,
  verdictOf,
} from '../kit/tenants.ts';
import { until } from '../kit/within.ts';

const readiness = async ({ adminUrl }: GatewayUnderTest) => {
  const { status, text } = await call(adminUrl, { method: 'GET', path: '/health/ready' });
  return `${status} ${text}`;
};

/** An instance that does not notice what others change: it cannot read names any more. */
async function startUnaware(
  { startAnother }: SharedDatabase,
  sections: Parameters<SharedDatabase['startAnother']>[0],
): Promise<GatewayUnderTest & { readonly makeUnaware: () => void }> {
  const databases: FaultyDatabase[] = [];
  const gateway = await startAnother(sections, (database) => {
    const faulty = createFaultyDatabase(database);
    databases.push(faulty);
    return faulty;
  });
  const makeUnaware = () => {
    for (const database of databases) database.fail('before', /tenant_name/);
  };
  return { ...gateway, makeUnaware };
}

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`while instances get another configuration one after the other: ${dialect}`, {
    skip: dialect === 'postgres' && skipWithoutPostgres,
  }, () => {
    const shopClients = [{ ...client('till'), tenant: 'shop' }, client('shop')];
    const movedClients = [{ ...client('till'), tenant: 'rival' }, client('shop')];

    test('a client that was moved to another tenant is refused by those with the old one, and others go on', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const old = await startAnother({ ...sections, clients: shopClients });
      const requestId = randomUUID();
      await change(old, 'clients/till/move-credential', 'rival');
      const next = await startAnother({ ...sections, clients: movedClients });
      assert.equal((await pay(next, 'till', requestId)).status, 201);
      await until(
        10_000,
        'the old instance has noticed',
        async () => verdictOf(await pay(old, 'till', requestId)) === 'STATE_UNAVAILABLE',
      );
      assert.match(
        old.logLines.join(''),
        /"clients":"till","message":"these clients work for other tenants now/,
      );
      assert.equal((await pay(old, 'shop')).status, 201);
      assert.match(await readiness(old), /^200/);
      assert.equal(bank.payments.length, 2);
      await old.reload({ ...sections, clients: movedClients });
      assert.ok(isReplay(await pay(old, 'till', requestId)));
    });

    test('a client that was moved is refused even by one that has not noticed', async (t) => {
      const shared = await shareDatabase(t, dialect);
      const { bank, sections, startAnother } = shared;
      const old = await startUnaware(shared, { ...sections, clients: shopClients });
      const other = await startAnother({ ...sections, clients: shopClients });
      old.makeUnaware();
      await change(other, 'clients/till/move-credential', 'rival');
      const requestId = randomUUID();
      await other.reload({ ...sections, clients: movedClients });
      assert.equal((await pay(other, 'till', requestId)).status, 201);
      assert.equal(verdictOf(await pay(old, 'till', requestId)), 'STATE_UNAVAILABLE');
      assert.equal(bank.payments.length, 1);
    });

    test('payments of other clients go on without an error when one is moved', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const gateway = await startAnother({ ...sections, clients: shopClients });
      const paid = Array.from({ length: 20 }, () => pay(gateway, 'shop'));
      await change(gateway, 'clients/till/move-credential', 'rival');
      paid.push(...Array.from({ length: 20 }, () => pay(gateway, 'shop')));
      assert.deepEqual([...new Set((await Promise.all(paid)).map(verdictOf))], [201]);
      assert.equal(bank.payments.length, 40);
    });

    test('one without clients pays nothing more as soon as another one has clients, and says why', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const old = await startAnother(sections);
      const clients = [client('shop')];
      const next = await startAnother({ ...sections, clients });
      const requestId = randomUUID();
      assert.equal(verdictOf(await pay(old, undefined, requestId)), 'STATE_UNAVAILABLE');
      assert.equal((await pay(next, 'shop', requestId)).status, 201);
      assert.equal(verdictOf(await pay(old, undefined, requestId)), 'STATE_UNAVAILABLE');
      assert.equal(bank.payments.length, 1);
      assert.match(await readiness(old), /^503.*none are configured, and the database knows clients/);
      assert.match(old.logLines.join(''), /"level":"error".*the database knows clients/);
      await assert.rejects(startAnother(sections), /the database knows clients/);
      await old.reload({ ...sections, clients });
      assert.ok(isReplay(await pay(old, 'shop', requestId)));
    });

    test('one without clients goes on beside one with the clients of the tenant that it was renamed to', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const old = await startAnother(sections);
      const requestId = randomUUID();
      assert.equal((await pay(old, undefined, requestId)).status, 201);
      await change(old, 'tenants/anonymous/rename', 'shop');
      const next = await startAnother({ ...sections, clients: [client('shop')] });
      assert.ok(isReplay(await pay(next, 'shop', requestId)));
      assert.ok(isReplay(await pay(old, undefined, requestId)));
      const second = randomUUID();
      assert.equal((await pay(next, 'shop', second)).status, 201);
      assert.ok(isReplay(await pay(old, undefined, second)));

      await next.reload({ ...sections, clients: [client('shop'), client('rival')] });
      assert.equal(
        verdictOf(await pay(old, undefined)),
        'STATE_UNAVAILABLE',
        'it could be a payment of rival',
      );
      assert.equal(bank.payments.length, 2);
    });

    test('one that is cut off from the database does not show payments of a tenant that was added meanwhile', async (t) => {
      const shared = await shareDatabase(t, dialect);
      const { bank, sections, startAnother } = shared;
      const databases: FaultyDatabase[] = [];
      const old = await startAnother({ ...sections, clients: [client('shop')] }, (database) => {
        const faulty = createFaultyDatabase(database);
        databases.push(faulty);
        return faulty;
      });
      const own = await pay(old, 'shop');
      for (const database of databases) database.fail('before');
      const next = await startAnother({ ...sections, clients: [client('shop'), client('rival')] });
      const payment = await pay(next, 'rival');
      assert.equal(payment.status, 201);
      await until(
        15_000,
        'the old instance has noticed that it is cut off',
        async () => verdictOf(await ask(old, 'GET', 'shop', 'unknown')) === 'STATE_UNAVAILABLE',
      );
      const reads = bank.requests.length;
      assert.equal(verdictOf(await ask(old, 'GET', 'shop', idOf(payment))), 'STATE_UNAVAILABLE');
      assert.equal(bank.requests.length, reads);
      assert.equal((await ask(old, 'GET', 'shop', idOf(own))).status, 200, 'it remembers this one');
    });

    test('one that lacks the environment which was activated sends it no new payments, and none elsewhere', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const other = await startBank(t, { name: 'two' });
      const old = await startAnother(sections);
      const environments = {
        active: 'sandbox',
        sandbox: { baseUrl: bank.baseUrl },
        second: { baseUrl: other.baseUrl },
      };
      const next = await startAnother({ environments });
      const switched = { environment: 'second', reason: 'a test' };
      assert.equal((await callAdminApi(next, 'PUT', '/api/environments/active', switched)).status, 200);
      assert.equal(verdictOf(await pay(old, undefined)), 'STATE_UNAVAILABLE');
      const unconfigured = /^503.*the active environment \\"second\\" is not configured/;
      await until(10_000, 'the old instance is not ready', async () =>
        unconfigured.test(await readiness(old)),
      );
      assert.equal((await pay(next, undefined)).header('Penstock-Environment'), 'second');
    });
  });
