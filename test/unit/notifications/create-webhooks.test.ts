import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { createWebhooks } from '../../../src/notifications/create-webhooks.ts';
import { subscriptionIdOf } from '../../../src/notifications/subscription-store.ts';
import type { WebhookConfig } from '../../../src/notifications/webhook-config.ts';
import { type Identities, namesAsIdentities } from '../../../src/request/identities.ts';
import type { StatusEvent } from '../../../src/request/statuses.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { WorkQueue } from '../../../src/store/subscriptions.ts';
import { createWebhookMessageTable } from '../../../src/store/webhook-messages.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { pollsOf } from '../../kit/payment-polls.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { newSubscriptions } from '../../kit/subscription-table.ts';
import { until } from '../../kit/within.ts';

/** The ids after tenant `former` and environment `old` were removed from the configuration. */
const identities: Identities = {
  ...namesAsIdentities,
  tenantIdOf: () => 'tenant-1',
  environmentWith: (id) => (id === 'sandbox' ? 'sandbox' : undefined),
  tenantIds: ['tenant-1', 'tenant-2'],
  environmentIds: ['sandbox', 'old'],
  tenantNameOf: (id) => (id === 'tenant-1' ? 'present' : 'former'),
  hasOtherTenants: true,
  hasOtherEnvironments: true,
};

const subscription = subscriptionSince(0, {
  tenant: 'tenant-1',
  environment: 'sandbox',
  headers: [['Authorization', 'Bearer token']],
});

/** Webhooks of this configuration. `searched`: the queues that were searched for due work. */
async function startWebhooks(t: TestContext, clients: WebhookConfig['clients'] = new Map()) {
  const { database, table, store, put } = await newSubscriptions(t);
  const searched: WorkQueue[] = [];
  const listeners: ((event: StatusEvent) => void)[] = [];
  const webhooks = createWebhooks({
    table: {
      ...table,
      take(work, queues, ...limits) {
        searched.push(...queues);
        return table.take(work, queues, ...limits);
      },
    },
    keys: [],
    messages: createWebhookMessageTable(database),
    events: {
      subscribe(listener) {
        listeners.push(listener);
        return () => {};
      },
    },
    paymentPolls: pollsOf(createMemoryState().keyValues),
    reads: {
      current: undefined,
      readJson: async () => ({ kind: 'failed' }),
    },
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
  const publish = (event: StatusEvent) => {
    for (const listener of listeners) listener(event);
  };
  return { webhooks, table, store, put, searched, publish };
}

describe('the webhooks of a gateway', () => {
  for (const [what, owner] of [
    ['of a tenant that was removed', { tenant: 'tenant-2' }],
    ['in an environment that was removed', { environment: 'old' }],
  ] as const)
    test(`end a subscription ${what} when its time is over, and list it until then`, async (t) => {
      const { webhooks, store, put } = await startWebhooks(t);
      await put({ ...subscription, ...owner }, { id: 'key', readInMs: 0 });
      const [listed] = await webhooks.manage.list({});
      assert.equal(listed?.paymentId, 'payment');
      webhooks.run();
      await until(5_000, 'it has ended', async () => !(await store.read('key')));
    });

  const client = {
    name: 'client',
    tenant: 'present',
    environments: ['sandbox'],
    urls: [subscription.url],
    secrets: [randomBytes(32)],
  } as const;
  const clients = new Map([[client.name, client]]);
  const payment = { tenantId: 'tenant-1', paymentKey: 'sandbox payment' };
  const id = subscriptionIdOf(payment.tenantId, payment.paymentKey);
  const stored = { ...subscription, until: Date.now() + 3_600_000 };

  test('read a payment after a change, but not at once after the change that they have seen themselves', async (t) => {
    const { put, table, searched, publish } = await startWebhooks(t, clients);
    const changedAt = (since: number) => ({
      ...stored,
      status: { hash: 'a', code: 'ACTC', finality: 'pending', since } as const,
    });
    const publishChange = async () => {
      const before = searched.length;
      publish({ what: 'changed', ...payment });
      await until(5_000, 'it is searched', () => searched.length > before);
    };
    const take = () => table.take('read', [{ tenant: 'tenant-1', environment: 'sandbox' }], 1, 3_600_000);
    await put(changedAt(Date.now() + 3_600_000), { id, readInMs: 3_600_000 });
    await publishChange();
    assert.deepEqual(await take(), [], 'it is due a second after the change');
    await put(changedAt(Date.now() - 2_000), { id, readInMs: 0 });
    const [taken] = await take();
    assert.ok(taken);
    await publishChange();
    await table.reschedule('read', id, { inMs: 3_600_000, lease: taken.lease });
    assert.deepEqual(await take(), [], 'a change during a read is seen by this read');
  });

  test('search only the queue of the payment after a notification of the bank', async (t) => {
    const { webhooks, put, searched } = await startWebhooks(t, clients);
    await put(stored, { id, readInMs: 3_600_000 });

    await webhooks.onBankNotification(payment);

    await until(5_000, 'it is searched', () => searched.length > 0);
    const { tenant, environment } = stored;
    assert.deepEqual(
      searched.map((queue) => [queue.tenant, queue.environment]),
      [[tenant, environment]],
    );
  });
});
