/** Instances with old configurations, late reads of the names, and changes of an operator at the worst moment. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Database } from '../../src/store/database.ts';
import { callAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { nameOfStatement } from '../kit/database-statements.ts';
import { createFaultyDatabase, type FaultyDatabase } from '../kit/faulty-database.ts';
import { startBank } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation } from '../kit/request.ts';
import { ask, change, client, idOf, isReplay, pay, shareDatabase, verdictOf } from '../kit/tenants.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const readsNames = /SELECT 'tenant' AS kind/;

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`identities in ${dialect}`, { skip: dialect === 'postgres' && skipWithoutPostgres }, () => {
    /** A gateway whose periodic read of the names has begun, and gets its answer with `answer`. */
    async function startWithLateRead(t: TestScope) {
      const shared = await shareDatabase(t, dialect);
      const databases: FaultyDatabase[] = [];
      const gateway = await shared.startAnother(
        { ...shared.sections, clients: [client('shop')] },
        (database) => {
          const faulty = createFaultyDatabase(database);
          databases.push(faulty);
          return faulty;
        },
      );
      return {
        ...{ ...shared, gateway },
        async holdRead(): Promise<() => void> {
          const count = () =>
            databases.flatMap(({ statements }) => statements).filter((sql) => readsNames.test(sql)).length;
          const before = count();
          const answers = databases.map((one) => one.block(readsNames));
          await until(10_000, 'the periodic read of the names', () => count() > before);
          return () => {
            for (const answer of answers) answer();
          };
        },
      };
    }

    test('a late answer to an older read of the names does not replace newer ones: a repeat after a rename is replayed', async (t) => {
      const { bank, sections, gateway, holdRead } = await startWithLateRead(t);
      const requestId = randomUUID();
      assert.equal((await pay(gateway, 'shop', requestId)).status, 201);
      const answer = await holdRead();
      await change(gateway, 'tenants/shop/rename', 'store');
      await gateway.reload({ ...sections, clients: [{ ...client('shop'), tenant: 'store' }] });
      answer();
      await callAdminApi(gateway, 'GET', '/api/environments'); // the answer has arrived
      assert.ok(isReplay(await pay(gateway, 'shop', requestId)));
      assert.equal(bank.payments.length, 1);
    });

    test('the same for a renamed environment: its payments are found', async (t) => {
      const { bank, gateway, holdRead } = await startWithLateRead(t);
      const before = idOf(await pay(gateway, 'shop'));
      const answer = await holdRead();
      await change(gateway, 'environments/sandbox/rename', 'box');
      await gateway.reload({ environments: { box: { baseUrl: bank.baseUrl } }, clients: [client('shop')] });
      answer();
      await callAdminApi(gateway, 'GET', '/api/environments');
      const named = [
        ...initiation.headers,
        ['X-API-Key', 'key of shop'],
        ['Penstock-Environment', 'box'],
      ] as const;
      const paid = await call(gateway.url, { ...initiation, requestId: randomUUID(), headers: named });
      for (const id of [before, idOf(paid)])
        assert.equal(verdictOf(await ask(gateway, 'GET', 'shop', id)), 200);
    });

    test('a tenant that is named anonymous is not forgotten when an instance without it starts', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const one = await startAnother({ ...sections, clients: [client('anonymous')] });
      const two = await startAnother({ ...sections, clients: [client('shop')] });
      const requestId = randomUUID();
      const id = idOf(await pay(one, 'anonymous', requestId));
      for (const method of ['GET', 'DELETE'] as const)
        assert.equal(verdictOf(await ask(two, method, 'shop', id)), 'PAYMENT_UNKNOWN');
      await assert.rejects(change(two, 'tenants/shop/rename', 'anonymous'), /anonymous/);
      assert.ok(isReplay(await pay(one, 'anonymous', requestId)));
      assert.equal(bank.payments.length, 1);
    });

    test('an instance without clients stops, even if it started while another one was adding clients', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const first = await startAnother({ ...sections, clients: [client('shop')] });
      const { promise: mayInsert, resolve: insert } = Promise.withResolvers<void>();
      const { promise: isInserting, resolve: onInsert } = Promise.withResolvers<void>();
      const clients = [client('shop'), client('rival')];
      const starting = startAnother({ ...sections, clients }, (database) => ({
        ...database,
        async execute(script) {
          if (script.includes('INTO credential')) {
            onInsert();
            await mayInsert;
          }
          return database.execute(script);
        },
      }));
      await isInserting;
      await change(first, 'tenants/shop/rename', 'anonymous');
      const without = await startAnother(sections);
      insert();
      const requestId = randomUUID();
      assert.equal(verdictOf(await pay(await starting, 'rival', requestId)), 201);
      assert.equal(verdictOf(await pay(without, 'rival', requestId)), 'STATE_UNAVAILABLE');
      assert.equal(bank.payments.length, 1);
    });

    test('an instance that does not know a new tenant yet finds none of its payments', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const old = await startAnother({ ...sections, clients: [client('shop')] });
      const next = await startAnother({ ...sections, clients: [client('shop'), client('rival')] });
      const id = idOf(await pay(next, 'rival'));
      for (const method of ['GET', 'DELETE'] as const)
        assert.equal(verdictOf(await ask(old, method, 'shop', id)), 'PAYMENT_UNKNOWN');
      assert.deepEqual(
        bank.payments.map(({ transactionStatus }) => transactionStatus),
        ['RCVD'],
      );
    });

    test('an instance that does not know a new environment yet sends nothing to its only one instead', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const second = await startBank(t, { name: 'two' });
      const claims = createGate();
      const clients = [client('shop')];
      const old = await startAnother({ ...sections, clients }, (database) => claims.hold(database, 'claim'));
      const paid = pay(old, 'shop'); // identified before the environment exists, claimed after it is active
      await claims.reached;
      const environments = {
        active: 'sandbox',
        sandbox: { baseUrl: bank.baseUrl },
        second: { baseUrl: second.baseUrl },
      };
      const next = await startAnother({ environments, clients });
      await switchEnvironment(next, 'second');
      claims.open();
      assert.equal(verdictOf(await paid), 'STATE_UNAVAILABLE');
      const id = idOf(await pay(next, 'shop'));
      assert.equal(verdictOf(await ask(old, 'DELETE', 'shop', id)), 'STATE_UNAVAILABLE');
      assert.deepEqual([bank.payments.length, second.payments.length], [0, 1]);
    });
  });

/** Holds the first statement of a name. */
function createGate() {
  const { promise: mayContinue, resolve: open } = Promise.withResolvers<void>();
  const { promise: reached, resolve: onReached } = Promise.withResolvers<void>();
  const hold = (database: Database, name: string): Database => ({
    ...database,
    async batch(statement, rows) {
      if (nameOfStatement(statement) === name) {
        onReached();
        await mayContinue;
      }
      return database.batch(statement, rows);
    },
  });
  return { hold, open, reached };
}
