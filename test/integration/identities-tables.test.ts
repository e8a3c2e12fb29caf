/** The tables of tenants and environments: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { createHoldTable } from '../../src/store/holds.ts';
import {
  createIdentityTable,
  type IdentityTable,
  type StoredIdentities,
} from '../../src/store/identities.ts';
import { createPaymentTable } from '../../src/store/payments.ts';
import { databaseKinds } from '../kit/databases.ts';
import type { TestScope } from '../kit/test-scope.ts';

const readAll = async (table: IdentityTable): Promise<StoredIdentities> => ({
  ...(await table.readNames()),
  credentials: await table.readCredentials(),
  addresses: await table.readAddresses(),
});

const nothing = { tenants: [], environments: [], credentials: [] };

for (const [kind, { skip, open }] of Object.entries(databaseKinds)) {
  describe(`tenants and environments in ${kind}`, { skip }, () => {
    async function start(t: TestScope) {
      const [database, other] = await open(t);
      return { database, table: createIdentityTable(database), onOther: createIdentityTable(other) };
    }

    test('are inserted together, each with its name as id', async (t) => {
      const { table, onOther } = await start(t);
      const credentials = [{ hash: 'ab12', tenant: 'shop' }];
      assert.equal(
        await table.insert({ tenants: ['shop', 'rival'], environments: ['sandbox'], credentials }),
        true,
      );
      assert.equal(await table.insert(nothing), true);
      const { tenants, ...others } = await readAll(onOther);
      // Each may have got another millisecond.
      assert.deepEqual(
        new Set(tenants),
        new Set([
          { name: 'rival', id: 'rival' },
          { name: 'shop', id: 'shop' },
        ]),
      );
      assert.deepEqual(others, {
        revision: 1,
        environments: [{ name: 'sandbox', id: 'sandbox' }],
        credentials: new Map([['ab12', 'shop']]),
        addresses: new Map(),
      });
    });

    test('are not inserted at all if another instance has inserted one of them', async (t) => {
      const { table, onOther } = await start(t);
      const credentials = [{ hash: 'ab12', tenant: 'store' }];
      await onOther.insert({ ...nothing, credentials: [{ hash: 'ab12', tenant: 'shop' }] });
      assert.equal(await table.insert({ tenants: ['store'], environments: ['sandbox'], credentials }), false);
      const stored = await readAll(table);
      assert.deepEqual([stored.tenants, stored.environments], [[], []]);
      assert.deepEqual([...stored.credentials], [['ab12', 'shop']]);
    });

    test('are inserted by one of several instances that insert different names with one credential at once', async (t) => {
      const { table, onOther } = await start(t);
      const insert = (own: typeof table, name: string) =>
        own.insert({ ...nothing, tenants: [name], credentials: [{ hash: 'ab12', tenant: name }] });
      const inserted = await Promise.all([insert(table, 'shop'), insert(onOther, 'store')]);
      assert.deepEqual(inserted.toSorted(), [false, true]);
      const { tenants, credentials } = await readAll(table);
      assert.deepEqual(
        tenants.map(({ id }) => id),
        [credentials.get('ab12')],
      );
    });

    test('keep their id and their former names when they are renamed', async (t) => {
      const { table, onOther } = await start(t);
      await table.insert({ ...nothing, tenants: ['shop'], environments: ['bank-b'] });
      assert.equal(await table.renameTenant('shop', 'store'), 'renamed');
      assert.equal(await table.renameTenant('shop', 'store'), 'renamed', 'again');
      assert.equal(await onOther.renameTenant('store', 'market'), 'renamed');
      assert.equal(await table.renameEnvironment('bank-b', 'bank-a'), 'renamed');
      const { tenants, environments } = await table.readNames();
      assert.deepEqual(tenants[0], { name: 'shop', id: 'shop' }, 'the first one');
      assert.deepEqual(Object.fromEntries(tenants.map(({ name, id }) => [name, id])), {
        shop: 'shop',
        store: 'shop',
        market: 'shop',
      });
      assert.deepEqual(environments, [
        { name: 'bank-b', id: 'bank-b' },
        { name: 'bank-a', id: 'bank-b' },
      ]);
    });

    test('keep what operators hold when they are renamed, under both names', async (t) => {
      const { database, table } = await start(t);
      const holds = createHoldTable(database);
      await table.insert({ ...nothing, environments: ['sandbox'] });
      const held = { lane: 'write', as: 'open', reason: 'the bank asks for it', leftMs: 60_000 } as const;
      await holds.hold({ ...held, environment: 'sandbox' });
      await table.renameEnvironment('sandbox', 'bank');
      assert.deepEqual(
        (await holds.read()).map(({ environment, as }) => [environment, as]),
        [
          ['bank', 'open'],
          ['sandbox', 'open'],
        ],
      );
    });

    test('do not get a name that another one has or has had, and unknown ones get none', async (t) => {
      const { table } = await start(t);
      await table.insert({ ...nothing, tenants: ['shop', 'rival'], environments: ['one', 'two'] });
      await table.renameTenant('rival', 'competitor');
      for (const name of ['rival', 'competitor'])
        assert.equal(await table.renameTenant('shop', name), 'in-use');
      assert.equal(await table.renameTenant('nobody', 'somebody'), 'unknown');
      assert.equal(await table.renameEnvironment('one', 'two'), 'in-use');
      assert.equal(await table.renameEnvironment('none', 'three'), 'unknown');
      const { tenants, environments } = await table.readNames();
      assert.deepEqual([...tenants, ...environments].map(({ name }) => name).toSorted(), [
        'competitor',
        'one',
        'rival',
        'shop',
        'two',
      ]);
    });

    test('get credentials of others only if an operator moves them', async (t) => {
      const { table, onOther } = await start(t);
      const credentials = [
        { hash: 'ab12', tenant: 'shop' },
        { hash: 'cd34', tenant: 'shop' },
      ];
      await table.insert({ ...nothing, tenants: ['shop'], credentials });
      await table.renameTenant('shop', 'store');
      await onOther.moveCredentials(['ab12', 'ef56'], 'rival');
      const { tenants, credentials: stored } = await readAll(table);
      assert.deepEqual(Object.fromEntries(stored), { ab12: 'rival', cd34: 'shop', ef56: 'rival' });
      assert.ok(tenants.some(({ name, id }) => name === 'rival' && id === 'rival'));
      await table.moveCredentials(['ab12'], 'store');
      assert.equal((await readAll(table)).credentials.get('ab12'), 'shop', 'the id of the tenant');
    });

    test('are out of date for all instances after credentials were moved or inserted', async (t) => {
      const { table, onOther } = await start(t);
      const added = { ...nothing, tenants: ['shop'] };
      await table.insert(added);
      assert.equal((await onOther.readNames()).revision, 0);
      const credentials = [{ hash: 'ab12', tenant: 'shop' }];
      await table.insert({ ...nothing, credentials });
      assert.equal((await onOther.readNames()).revision, 1);
      assert.equal(await table.insert({ ...added, credentials: [{ hash: 'cd34', tenant: 'shop' }] }), false);
      assert.equal((await onOther.readNames()).revision, 1, 'nothing was inserted');
      await table.moveCredentials(['ab12'], 'rival');
      assert.equal((await onOther.readNames()).revision, 2);
    });

    test('keep their first address until an operator moves them', async (t) => {
      const { table, onOther } = await start(t);
      await table.insert({ ...nothing, environments: ['sandbox'] });
      assert.equal(await table.moveEnvironment('sandbox', 'https://new.example'), undefined);
      const [one, two] = ['https://one.example', 'https://two.example'];
      const fixed = await Promise.all([table.fixAddress('sandbox', one), onOther.fixAddress('sandbox', two)]);
      const [first = ''] = fixed;
      assert.deepEqual(fixed, [first, first], 'both get the same');
      assert.equal(await table.fixAddress('sandbox', 'https://three.example'), first);
      await table.renameEnvironment('sandbox', 'bank');
      assert.equal(await onOther.moveEnvironment('bank', 'https://new.example'), first);
      assert.deepEqual([...(await readAll(table)).addresses], [['sandbox', 'https://new.example']]);
      assert.equal(await table.moveEnvironment('unknown', one), undefined);
    });

    test('have payments if a payment or a write of theirs is stored', async (t) => {
      const { database, table } = await start(t);
      assert.equal(await table.hasPayments('shop'), false);
      await createPaymentTable(database).insertFound({
        ...{ paymentId: randomUUID(), environment: 'sandbox', tenant: 'shop' },
        ...{ bankIds: '{}', isPermanent: false },
      });
      assert.equal(await table.hasPayments('shop'), true);
      assert.equal(await table.hasPayments('rival'), false);
    });

    test('are forgotten only if they have one name', async (t) => {
      const { table } = await start(t);
      await table.insert({ ...nothing, tenants: ['shop', 'anonymous'] });
      await table.renameTenant('shop', 'store');
      for (const tenant of ['shop', 'anonymous']) await table.forgetTenant(tenant);
      const { tenants } = await table.readNames();
      assert.deepEqual(
        tenants.map(({ name }) => name),
        ['shop', 'store'],
      );
    });
  });
}
