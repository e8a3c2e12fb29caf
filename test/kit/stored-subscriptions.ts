/** Subscriptions of webhooks in memory, and what operators can do with them. */

import { createCountSubscriptions } from '../../src/notifications/count-subscriptions.ts';
import {
  createManageSubscriptions,
  type ManageSubscriptions,
} from '../../src/notifications/manage-subscriptions.ts';
import type { Subscription } from '../../src/notifications/subscription.ts';
import { subscriptionIdOf } from '../../src/notifications/subscription-store.ts';
import { createWebhookMessageTable } from '../../src/store/webhook-messages.ts';
import { subscriptionSince } from './subscription.ts';
import { newSubscriptions, type StoredSubscriptions } from './subscription-table.ts';
import type { TestScope } from './test-scope.ts';

/** A message that an endpoint has not accepted yet. */
export const failedMessage = {
  id: 'message',
  sequence: 1,
  transactionStatus: 'ACTC',
  final: false,
  since: 0,
  attempts: 3,
  failedAttempts: 3,
  why: 'no connection (ECONNREFUSED)',
} as const satisfies Subscription['message'];

const hourMs = 3_600_000;

/**
 * Of the tenants `shop` (`tenant-1`) and `till` (`tenant-2`) in the environment `sandbox`.
 *
 * @param subscriptions what differs from an active subscription of `shop`
 */
export async function storeSubscriptions(
  t: TestScope,
  ...subscriptions: readonly (Partial<Subscription> & Pick<Subscription, 'paymentId'>)[]
): Promise<{ readonly stored: StoredSubscriptions; readonly manage: ManageSubscriptions }> {
  const stored = await newSubscriptions(t);
  for (const one of subscriptions) {
    const subscription = subscriptionSince(0, {
      tenant: 'tenant-1',
      environment: 'environment-1',
      headers: [['Authorization', 'Bearer token']],
      sequence: 1,
      ...one,
    });
    const { tenant, environment, paymentId, message } = subscription;
    await stored.put(subscription, {
      id: subscriptionIdOf(tenant, `${environment} ${paymentId}`),
      readInMs: hourMs,
      ...(message && message.deadSince === undefined && { deliveryInMs: hourMs }),
    });
  }
  return { stored, manage: manageStored(stored) };
}

/** What operators can do with these subscriptions. */
export function manageStored(
  { database, table, store }: StoredSubscriptions,
  clients: readonly string[] = ['client'],
): ManageSubscriptions {
  const tenants = () => [
    { name: 'shop', id: 'tenant-1' },
    { name: 'till', id: 'tenant-2' },
  ];
  return createManageSubscriptions({
    tenants,
    environments: () => [{ name: 'sandbox', id: 'environment-1' }],
    store,
    messages: createWebhookMessageTable(database),
    count: createCountSubscriptions({ table, tenants }),
    clients: () => clients,
  });
}
