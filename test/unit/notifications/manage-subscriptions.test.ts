import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createManageSubscriptions } from '../../../src/notifications/manage-subscriptions.ts';
import { type Subscription, serializeSubscription } from '../../../src/notifications/subscription.ts';
import {
  createSubscriptionStore,
  queueNames,
  subscriptionKeyOf,
} from '../../../src/notifications/subscription-store.ts';
import { createMemorySchedules } from '../../../src/state/memory-schedules.ts';

const hour = 3_600_000;
const message: Subscription['message'] = {
  id: 'message',
  sequence: 1,
  transactionStatus: 'ACTC',
  final: false,
  since: 0,
  failedAttempts: 3,
  why: 'no connection (ECONNREFUSED)',
};

const paymentKeyOf = (environmentId: string, paymentId: string) => `${environmentId} ${paymentId}`;

async function setUp(...stored: readonly (Partial<Subscription> & { readonly paymentId: string })[]) {
  const schedules = createMemorySchedules(() => performance.now());
  const store = createSubscriptionStore(schedules);
  for (const one of stored) {
    const subscription: Subscription = {
      v: 1,
      id: 'subscription',
      tenant: 'tenant-1',
      environment: 'environment-1',
      client: 'client',
      paymentService: 'payments',
      paymentProduct: 'sepa-credit-transfers',
      url: 'https://tpp.example/hooks',
      content: 'PROCESS',
      since: 0,
      until: hour,
      headers: [['Authorization', 'Bearer token']],
      sequence: 1,
      ...one,
    };
    const isDead = one.message?.deadSince !== undefined;
    const { tenant, environment, paymentId } = subscription;
    await schedules.write(
      subscriptionKeyOf(tenant, paymentKeyOf(environment, paymentId)),
      0,
      serializeSubscription(subscription),
      [
        { queue: queueNames.poll(subscription), inMs: hour },
        ...(one.message && !isDead ? [{ queue: queueNames.delivery(tenant), inMs: hour }] : []),
        ...(isDead ? [{ queue: queueNames.dead(tenant), inMs: hour }] : []),
      ],
    );
  }
  const manage = createManageSubscriptions({
    schedules,
    store,
    tenants: () => [
      { name: 'shop', id: 'tenant-1' },
      { name: 'till', id: 'tenant-2' },
    ],
    environments: () => [{ name: 'sandbox', id: 'environment-1' }],
    paymentKeyOf,
  });
  return { schedules, manage };
}

const stored = [
  { paymentId: 'active' },
  { paymentId: 'suspended', suspended: true },
  { paymentId: 'undelivered', message },
  { paymentId: 'dead', message: { ...message, deadSince: 5 } },
  { paymentId: 'other', tenant: 'tenant-2' },
] as const;

describe('the subscriptions that operators see', () => {
  test('have a state and names, and no credentials', async () => {
    const { manage } = await setUp(...stored);
    const listed = await manage.list({});
    assert.deepEqual(
      listed
        .map(({ paymentId, state, tenant, environment }) => [paymentId, state, tenant, environment])
        .toSorted(),
      [
        ['active', 'active', 'shop', 'sandbox'],
        ['dead', 'dead', 'shop', 'sandbox'],
        ['other', 'active', 'till', 'sandbox'],
        ['suspended', 'suspended', 'shop', 'sandbox'],
        ['undelivered', 'undelivered', 'shop', 'sandbox'],
      ],
    );
    assert.ok(!JSON.stringify(listed).includes('token'));
  });

  test('are selected by tenant, payment and state', async () => {
    const { manage } = await setUp(...stored);
    const paymentsOf = async (filter: Parameters<typeof manage.list>[0]) =>
      (await manage.list(filter)).map(({ paymentId }) => paymentId);
    assert.deepEqual(await paymentsOf({ tenant: 'till' }), ['other']);
    assert.deepEqual(await paymentsOf({ tenant: 'nobody' }), []);
    assert.deepEqual(await paymentsOf({ payment: 'dead' }), ['dead']);
    assert.deepEqual(await paymentsOf({ payment: 'dead', tenant: 'till' }), []);
    for (const state of ['active', 'suspended', 'undelivered', 'dead'] as const)
      assert.deepEqual(await paymentsOf({ state, tenant: 'shop' }), [state]);
  });

  test('can be sent again: the message is due at once, under its id', async () => {
    const { manage, schedules } = await setUp(...stored);
    for (const payment of ['dead', 'undelivered']) {
      const [listed] = await manage.list({ payment });
      assert.equal((await manage.resend(listed?.id ?? ''))?.message?.id, 'message');
      const taken = await schedules.take(queueNames.delivery('tenant-1'), 10, hour);
      assert.deepEqual(
        taken.map(({ key }) => key),
        [listed?.id],
      );
    }
    assert.deepEqual(await schedules.count(queueNames.dead('tenant-1')), { all: 0, due: 0 });
    const [active] = await manage.list({ payment: 'active' });
    assert.equal(await manage.resend(active?.id ?? ''), undefined, 'there is nothing to send');
    assert.equal(await manage.resend('unknown'), undefined);
  });

  test('can be ended', async () => {
    const { manage, schedules } = await setUp(...stored);
    const [listed] = await manage.list({ payment: 'undelivered' });
    assert.equal((await manage.end(listed?.id ?? ''))?.paymentId, 'undelivered');
    assert.deepEqual(await manage.list({ payment: 'undelivered' }), []);
    assert.deepEqual(await schedules.count(queueNames.delivery('tenant-1')), { all: 0, due: 0 });
    assert.equal(await manage.end('unknown'), undefined);
  });
});
