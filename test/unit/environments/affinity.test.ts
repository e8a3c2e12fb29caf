import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  createAffinityStore,
  type PaymentAffinity,
  type PaymentUse,
} from '../../../src/environments/affinity.ts';
import type { Database } from '../../../src/store/database.ts';
import { migrate } from '../../../src/store/migrations.ts';
import { createPaymentTable } from '../../../src/store/payments.ts';
import { inMemory, openSqlite } from '../../../src/store/sqlite.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { until } from '../../kit/within.ts';
import { dayMs } from './fake-clocks.ts';
import { errorOf } from './requests.ts';
import { storePayment } from './stored-payments.ts';

const transfer = 'payments/sepa-credit-transfers';
const inSandbox: PaymentAffinity = {
  ...{ environment: 'sandbox', tenant: 'shop', initiatedAs: transfer, bankIds: undefined },
};
const inProduction = { ...inSandbox, environment: 'production' };
const rivals = { ...inSandbox, tenant: 'rival' };

/** An instance of the gateway on a database that it may share with others. */
const instanceOn = (database: Database) => createAffinityStore(createPaymentTable(database), 400 * dayMs);

async function start(t: TestContext) {
  const database = await newGatewayDatabase(t);
  const connection = createFaultyDatabase(database);
  return { database, connection, one: instanceOn(connection) };
}

describe('the affinity of a payment', () => {
  test('is that which the ledger has stored, on every instance', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'p-1', inSandbox);
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await instanceOn(database).environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('is empty for an id that was not stored, and ids are case-sensitive', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'Payment', inSandbox);
    for (const id of ['another', 'payment', 'Payment ', '', 'Payment\0'])
      assert.deepEqual(await one.environmentsOf(id, 'shop'), [], JSON.stringify(id));
  });

  test('can contain several environments, and includes other tenants, because the routing rules check the owner', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'p-1', rivals);
    await storePayment(database, 'p-1', inProduction);
    const found = await one.environmentsOf('p-1', 'shop');
    assert.deepEqual(new Set(found), new Set([rivals, inProduction]));
  });

  test('never gets a second tenant in one environment', async (t) => {
    const { database, one } = await start(t);
    assert.equal(await storePayment(database, 'p-1', inSandbox), true);
    assert.equal(await storePayment(database, 'p-1', rivals), false);
    assert.deepEqual(await one.environmentsOf('p-1', 'rival'), [inSandbox]);
  });

  test('is looked up with one statement for all requests of a moment', async (t) => {
    const { database, connection, one } = await start(t);
    await storePayment(database, 'p-1', inSandbox);
    const before = connection.statements.length;
    await Promise.all(['p-1', 'p-2', 'p-1'].map((id) => one.environmentsOf(id, 'shop')));
    assert.equal(connection.statements.length, before + 1);
  });
});

describe('the affinities that an instance has read for a status', () => {
  test('are recent enough for a second, for a status of a payment of the same tenant', async (t) => {
    const { database, connection, one } = await start(t);
    let nowMs = Math.round(performance.now());
    t.mock.method(performance, 'now', () => nowMs);
    await storePayment(database, 'p-1', inSandbox);
    /** How many statements a lookup costs. */
    const lookUp = async (tenant: string, use: PaymentUse) => {
      const before = connection.statements.length;
      assert.deepEqual(await one.environmentsOf('p-1', tenant, use), [inSandbox]);
      return connection.statements.length - before;
    };
    assert.equal(await lookUp('shop', 'status'), 1);
    nowMs += 999;
    assert.equal(await lookUp('shop', 'status'), 0);
    assert.equal(await lookUp('rival', 'status'), 1, 'it may have a payment of its own since');
    assert.equal(await lookUp('shop', 'read'), 1);
    assert.equal(await lookUp('shop', 'write'), 1);
    nowMs += 1_000;
    assert.equal(await lookUp('shop', 'status'), 1);
  });

  test('are not recent because the instance has stored one of them', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'p-1', inProduction);
    one.cacheStored('p-1', inSandbox);
    assert.deepEqual(await one.environmentsOf('p-1', 'shop', 'status'), [inProduction]);
  });

  test('contain what the instance stores after that', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'p-1', inSandbox);
    await one.environmentsOf('p-1', 'shop', 'status');
    await storePayment(database, 'p-1', inProduction);
    one.cacheStored('p-1', inProduction);
    assert.deepEqual(await one.environmentsOf('p-1', 'shop', 'status'), [inSandbox, inProduction]);
  });
});

describe('the affinities that an instance has cached', () => {
  test('are those that it has stored or read, and cost no statement', async (t) => {
    const { database, connection, one } = await start(t);
    await storePayment(database, 'read', inProduction);
    await one.environmentsOf('read', 'shop');
    one.cacheStored('stored', inSandbox);
    const before = connection.statements.length;
    assert.deepEqual(one.lastSeen('read'), [inProduction]);
    assert.deepEqual(one.lastSeen('stored'), [inSandbox]);
    assert.deepEqual(one.lastSeen('another'), []);
    assert.equal(connection.statements.length, before);
  });

  test('never hide one that another instance has stored', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'p-1', inSandbox);
    one.cacheStored('p-1', inSandbox);
    await storePayment(database, 'p-1', inProduction);
    assert.deepEqual(new Set(await one.environmentsOf('p-1', 'shop')), new Set([inSandbox, inProduction]));
    assert.equal(one.lastSeen('p-1').length, 2);
  });

  test('contain both environments that gave one id to two payments', async (t) => {
    const { one } = await start(t);
    one.cacheStored('p-1', inSandbox);
    one.cacheStored('p-1', inProduction);
    assert.deepEqual(one.lastSeen('p-1'), [inSandbox, inProduction]);
  });

  test('do not contain a payment whose id was given again, because its product may be another one', async (t) => {
    const { one } = await start(t);
    one.cacheStored('p-1', inSandbox);
    one.cacheStored('p-1', { ...inSandbox, initiatedAs: 'payments/instant-sepa-credit-transfers' });
    assert.deepEqual(one.lastSeen('p-1'), []);
  });

  test('answer while the database is unreachable, and only for one of their tenants', async (t) => {
    const { database, connection, one } = await start(t);
    await storePayment(database, 'read', inProduction);
    await one.environmentsOf('read', 'shop');
    one.cacheStored('stored', rivals);
    connection.fail('before');
    assert.deepEqual(await one.environmentsOf('read', 'shop'), [inProduction]);
    assert.deepEqual(await one.environmentsOf('stored', 'rival'), [rivals]);
    for (const id of ['stored', 'unknown']) {
      const { code } = await errorOf(() => one.environmentsOf(id, 'shop'));
      assert.equal(code, 'STATE_UNAVAILABLE', id);
    }
    connection.recover();
    assert.deepEqual(await one.environmentsOf('unknown', 'shop'), []);
  });
});

describe('ids that a later answer names', () => {
  const later = { ...{ paymentId: 'p-1', environment: 'sandbox', tenant: 'shop' }, isPermanent: false };
  const idsOf = async (database: Database) =>
    (await instanceOn(database).environmentsOf('p-1', 'shop')).map(({ bankIds }) => bankIds);

  test('are added to those of the payment, whichever instance adds them', async (t) => {
    const { database } = await start(t);
    const bankIds = { payment: 'p%2D1', authorisations: ['a=b'] };
    await storePayment(database, 'p-1', { ...inSandbox, bankIds });
    const added = ['c=d', 'e=f', 'g=h'].map((id) =>
      instanceOn(database).addBankIds({ ...later, bankIds: { authorisations: [id] } }),
    );
    await Promise.all(added);
    const [found] = await idsOf(database);
    assert.equal(found?.payment, 'p%2D1');
    assert.deepEqual(found?.authorisations.toSorted(), ['a=b', 'c=d', 'e=f', 'g=h']);
  });

  test('are recorded for a payment that the gateway has not initiated', async (t) => {
    const { database, one } = await start(t);
    const bankIds = { authorisations: ['a=b'] };
    await one.addBankIds({ ...later, bankIds });
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [
      { ...inSandbox, initiatedAs: undefined, bankIds },
    ]);
    assert.deepEqual(await idsOf(database), [bankIds]);
  });

  test('are never recorded for the payment of another tenant', async (t) => {
    const { database, one } = await start(t);
    await storePayment(database, 'p-1', rivals);
    await one.addBankIds({ ...later, bankIds: { authorisations: ['a=b'] } });
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [rivals]);
  });

  for (const text of ['', 'sandbox', '[]', '{}', '{"authorisations":"a"}'])
    test(`fail the request if they are unreadable: ${text || 'empty text'}`, async (t) => {
      const { database, one } = await start(t);
      await storePayment(database, 'p-1', inSandbox);
      await database.query('UPDATE payment SET bank_ids = $1', [text]);
      const { code, message } = await errorOf(() => one.environmentsOf('p-1', 'shop'));
      assert.equal(code, 'STATE_UNAVAILABLE');
      assert.doesNotMatch(message, /p-1|sandbox/);
    });
});

/** A database with a clock of its own. */
async function startWithClock(t: TestContext) {
  let nowMs = Date.parse('2026-01-01T12:00:00Z');
  const database = openSqlite(inMemory, () => nowMs);
  t.after(() => database.close());
  await migrate(database);
  const connection = createFaultyDatabase(database);
  const one = instanceOn(connection);
  return {
    database,
    connection,
    one,
    advance(ms: number) {
      nowMs += ms;
    },
    async read() {
      await one.deleteExpired();
      return one.environmentsOf('p-1', 'shop');
    },
    renewals: () => connection.statements.filter((sql) => /UPDATE payment SET used_at/.test(sql)).length,
  };
}

describe('the expiry of an affinity', () => {
  test('happens after the configured time without use', async (t) => {
    const { database, advance, read } = await startWithClock(t);
    await storePayment(database, 'p-1', inSandbox);
    advance(400 * dayMs + 1);
    assert.deepEqual(await read(), []);
  });

  test('is postponed by every use', async (t) => {
    const { database, advance, read, renewals } = await startWithClock(t);
    await storePayment(database, 'p-1', inSandbox);
    for (const use of [1, 2]) {
      advance(399 * dayMs);
      assert.deepEqual(await read(), [inSandbox]);
      await until(2_000, 'the use is stored', () => renewals() === use);
    }
    advance(401 * dayMs);
    assert.deepEqual(await read(), []);
  });

  test('is postponed by at most one write per day', async (t) => {
    const { database, advance, one, renewals } = await startWithClock(t);
    await storePayment(database, 'p-1', inSandbox);
    for (let hour = 0; hour < 3 * 24; hour += 1) {
      await one.environmentsOf('p-1', 'shop');
      await one.environmentsOf('p-1', 'shop'); // so that a renewal has ended
      advance(3_600_000);
    }
    assert.equal(renewals(), 2);
  });

  test('is not postponed by another tenant, which must not find out that the payment exists', async (t) => {
    const { database, advance, one, renewals } = await startWithClock(t);
    await storePayment(database, 'p-1', inSandbox);
    advance(2 * dayMs);
    await one.environmentsOf('p-1', 'rival');
    await one.environmentsOf('p-1', 'rival');
    assert.equal(renewals(), 0);
  });

  test('does not make a read fail if the renewal fails', async (t) => {
    const { database, advance, connection, one } = await startWithClock(t);
    await storePayment(database, 'p-1', inSandbox);
    advance(2 * dayMs);
    connection.fail('before', /UPDATE payment SET used_at/);
    for (const _ of [1, 2]) assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('never happens for a standing order, which needs no renewal', async (t) => {
    const { database, advance, read, renewals } = await startWithClock(t);
    await storePayment(database, 'p-1', inSandbox, true);
    await storePayment(database, 'p-1', inSandbox); // another payment of the tenant with the same id
    advance(10_000 * dayMs);
    assert.deepEqual(await read(), [inSandbox]);
    assert.equal(renewals(), 0);
  });
});
