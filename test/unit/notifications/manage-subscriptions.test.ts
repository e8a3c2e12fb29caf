import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failedMessage as message, storeSubscriptions } from '../../kit/stored-subscriptions.ts';

const hour = 3_600_000;

const stored = [
  { paymentId: 'active' },
  { paymentId: 'failing', failedReads: 3 },
  { paymentId: 'undelivered', message },
  { paymentId: 'dead', message: { ...message, deadSince: 5 } },
  { paymentId: 'other', tenant: 'tenant-2' },
] as const;

describe('the subscriptions that operators see', () => {
  test('have a state and names, and no credentials', async (t) => {
    const { manage } = await storeSubscriptions(t, ...stored);
    const listed = await manage.list({});
    assert.deepEqual(
      listed
        .map(({ paymentId, state, tenant, environment }) => [paymentId, state, tenant, environment])
        .toSorted(),
      [
        ['active', 'active', 'shop', 'sandbox'],
        ['dead', 'dead', 'shop', 'sandbox'],
        ['failing', 'failing', 'shop', 'sandbox'],
        ['other', 'active', 'till', 'sandbox'],
        ['undelivered', 'undelivered', 'shop', 'sandbox'],
      ],
    );
    assert.ok(!JSON.stringify(listed).includes('token'));
  });

  test('show no value of the query of their URL', async (t) => {
    const { manage } = await storeSubscriptions(t, {
      paymentId: '1',
      url: 'https://tpp.example/hooks?token=secret',
    });
    assert.equal((await manage.list({}))[0]?.url, 'https://tpp.example/hooks?***');
  });

  test('are selected by tenant, payment and state', async (t) => {
    const { manage } = await storeSubscriptions(t, ...stored);
    const paymentsOf = async (filter: Parameters<typeof manage.list>[0]) =>
      (await manage.list(filter)).map(({ paymentId }) => paymentId);
    assert.deepEqual(await paymentsOf({ tenant: 'till' }), ['other']);
    assert.deepEqual(await paymentsOf({ tenant: 'nobody' }), []);
    assert.deepEqual(await paymentsOf({ payment: 'dead' }), ['dead']);
    assert.deepEqual(await paymentsOf({ payment: 'dead', tenant: 'till' }), []);
    for (const state of ['active', 'failing', 'undelivered', 'dead'] as const)
      assert.deepEqual(await paymentsOf({ state, tenant: 'shop' }), [state]);
  });

  test('can be sent again: the message is due at once, under its id', async (t) => {
    const { manage, stored: database } = await storeSubscriptions(t, ...stored);
    for (const payment of ['dead', 'undelivered']) {
      const [listed] = await manage.list({ payment });
      assert.equal((await manage.resend(listed?.id ?? ''))?.message?.id, 'message');
      const taken = await database.table.take('delivery', [{ tenant: 'tenant-1' }], 10, hour);
      assert.deepEqual(
        taken.map(({ id }) => `sub-${id}`),
        [listed?.id],
      );
    }
    assert.equal((await database.countsOf('tenant-1')).dead, 0);
    const [active] = await manage.list({ payment: 'active' });
    assert.equal(await manage.resend(active?.id ?? ''), undefined, 'there is nothing to send');
    assert.equal(await manage.resend('unknown'), undefined);
  });

  test('are counted by tenant and state', async (t) => {
    const { manage } = await storeSubscriptions(t, ...stored);
    assert.deepEqual(await manage.count(), [
      { tenant: 'shop', active: 4, overdue: 0, failing: 1, undelivered: 1, dead: 1 },
      { tenant: 'till', active: 1, overdue: 0, failing: 0, undelivered: 0, dead: 0 },
    ]);
  });

  test('are found by their id', async (t) => {
    const { manage } = await storeSubscriptions(t, ...stored);
    const [listed] = await manage.list({ payment: 'dead' });
    assert.deepEqual(await manage.find(listed?.id ?? ''), listed);
    assert.equal(await manage.find('unknown'), undefined);
  });

  test('have dead letters that can all be sent again, those of one tenant or of all', async (t) => {
    const dead = { ...message, deadSince: 5 };
    const ofTill = { paymentId: 'of till', tenant: 'tenant-2', message: dead };
    const ofShop = Array.from({ length: 450 }, (_, number) => ({
      paymentId: `dead ${number}`,
      message: dead,
    }));
    const { manage, stored: database } = await storeSubscriptions(t, ...stored, ...ofShop, ofTill);
    const resent = async (tenant?: string) => {
      let sum = 0;
      for await (const count of manage.resendDead(tenant)) sum += count;
      return sum;
    };
    assert.equal(await resent('nobody'), 0);
    assert.equal(await resent('till'), 1);
    assert.equal(await resent(), 451);
    assert.equal((await database.countsOf('tenant-1')).dead, 0);
    assert.equal((await database.workOf('delivery')).due, 452);
    assert.equal(await resent(), 0, 'those on their way are not sent twice');
  });

  test('can be ended', async (t) => {
    const { manage, stored: database } = await storeSubscriptions(t, ...stored);
    const [listed] = await manage.list({ payment: 'undelivered' });
    assert.equal((await manage.end(listed?.id ?? ''))?.paymentId, 'undelivered');
    assert.deepEqual(await manage.list({ payment: 'undelivered' }), []);
    assert.equal((await database.workOf('delivery')).all, 0);
    assert.equal(await manage.end('unknown'), undefined);
  });
});
