import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { createWebhooks } from '../../../src/notifications/create-webhooks.ts';
import { serializeSubscription } from '../../../src/notifications/subscription.ts';
import { queueNames, subscriptionKeyOf } from '../../../src/notifications/subscription-store.ts';
import type { WebhookConfig } from '../../../src/notifications/webhook-config.ts';
import { type Identities, namesAsIdentities } from '../../../src/request/identities.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { until } from '../../kit/within.ts';

/** The ids after tenant `former` and environment `old` were removed from the configuration, and tenant `present` was renamed. */
const identities: Identities = {
  ...namesAsIdentities,
  tenantIdOf: (name) => (name === 'present' ? 'tenant-1' : name),
  environmentWith: (id) => (id === 'sandbox' ? 'sandbox' : undefined),
  tenantIds: ['tenant-1', 'former'],
  environmentIds: ['sandbox', 'old'],
};

const subscription = subscriptionSince(0, {
  tenant: 'tenant-1',
  environment: 'sandbox',
  headers: [['Authorization', 'Bearer token']],
});

/** Webhooks of this configuration. `taken`: the queues that were searched for due records. */
function startWebhooks(t: TestContext, clients: WebhookConfig['clients'] = new Map()) {
  const { schedules, keyValues } = createMemoryState();
  const taken: string[] = [];
  const webhooks = createWebhooks({
    schedules: {
      ...schedules,
      take(queue, ...limits) {
        taken.push(queue);
        return schedules.take(queue, ...limits);
      },
    },
    events: { publish() {}, subscribe: () => () => {} },
    reads: {
      current: undefined,
      read: async () => ({ kind: 'failed' }),
      readJson: async () => ({ kind: 'failed' }),
    },
    keyValues,
    budget: { take: async () => true, giveBack() {}, overdue: () => [] },
    paymentKeyOf: (environmentId, paymentId) => `${environmentId} ${paymentId}`,
    log() {},
    now: () => performance.now(),
    metrics: createMetrics(),
  });
  t.after(() => webhooks.stop());
  webhooks.current = {
    clients,
    tenants: ['present'],
    identities: () => identities,
    post: async () => ({ kind: 'delivered' }),
    schedule: { pendingTtl: 1_000, settledTtl: 1_000, maxInterval: 1_000 },
    retryForMs: 1_000,
    keepForMs: 1_000,
    maxSubscriptions: 1,
    statusUrlOf: () => 'https://gateway.example/status',
    statusReadOf: () => undefined,
    authorisationReadOf: () => undefined,
  };
  return { webhooks, schedules, taken };
}

describe('the webhooks of a gateway', () => {
  for (const [what, owner] of [
    ['of a tenant that was removed', { tenant: 'former' }],
    ['in an environment that was removed', { environment: 'old' }],
  ] as const)
    test(`end a subscription ${what} when its time is over, and list it until then`, async (t) => {
      const { webhooks, schedules } = startWebhooks(t);
      const stored = { ...subscription, ...owner };
      const due = [{ queue: queueNames.poll(stored), inMs: 0 }];
      await schedules.write('key', 0, serializeSubscription(stored), due);
      const [listed] = await webhooks.manage.list({});
      assert.equal(listed?.paymentId, 'payment');
      webhooks.run();
      await until(5_000, 'it has ended', async () => !(await schedules.read('key')));
    });

  test('search only the queue of the payment after a notification of the bank', async (t) => {
    const client = {
      name: 'client',
      tenant: 'present',
      environments: ['sandbox'],
      urls: [subscription.url],
      secrets: [randomBytes(32)],
    } as const;
    const clients = new Map([[client.name, client]]);
    const { webhooks, schedules, taken } = startWebhooks(t, clients);
    const stored = { ...subscription, until: Date.now() + 3_600_000 };
    const payment = { tenantId: 'tenant-1', paymentKey: 'sandbox payment' };
    const due = [{ queue: queueNames.poll(stored), inMs: 3_600_000 }];
    const key = subscriptionKeyOf(payment.tenantId, payment.paymentKey);
    await schedules.write(key, 0, serializeSubscription(stored), due);

    await webhooks.onBankNotification(payment);

    await until(5_000, 'it is searched', () => taken.length > 0);
    assert.deepEqual(new Set(taken), new Set([queueNames.poll(stored)]));
  });
});
