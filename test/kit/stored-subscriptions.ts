/** Subscriptions of webhooks in memory, and what operators can do with them. */

import { createCountSubscriptions } from '../../src/notifications/count-subscriptions.ts';
import {
  createManageSubscriptions,
  type ManageSubscriptions,
} from '../../src/notifications/manage-subscriptions.ts';
import { isFailing, type Subscription, serializeSubscription } from '../../src/notifications/subscription.ts';
import {
  createSubscriptionStore,
  queueNames,
  subscriptionKeyOf,
} from '../../src/notifications/subscription-store.ts';
import { createMemorySchedules } from '../../src/state/former/memory-schedules.ts';
import type { Schedules } from '../../src/state/former/schedules.ts';
import { subscriptionSince } from './subscription.ts';

interface StoredSubscriptions {
  readonly schedules: Schedules;
  readonly manage: ManageSubscriptions;
}

/** A message that an endpoint has not accepted yet. */
export const failedMessage = {
  id: 'message',
  sequence: 1,
  transactionStatus: 'ACTC',
  final: false,
  since: 0,
  failedAttempts: 3,
  why: 'no connection (ECONNREFUSED)',
} as const satisfies Subscription['message'];

const hourMs = 3_600_000;

/**
 * Of the tenants `shop` (`tenant-1`) and `till` (`tenant-2`) in the environment `sandbox`.
 *
 * @param stored what differs from an active subscription of `shop`
 */
export async function storeSubscriptions(
  ...stored: readonly (Partial<Subscription> & Pick<Subscription, 'paymentId'>)[]
): Promise<StoredSubscriptions> {
  const schedules = createMemorySchedules(() => performance.now());
  for (const one of stored) {
    const subscription = subscriptionSince(0, {
      tenant: 'tenant-1',
      environment: 'environment-1',
      headers: [['Authorization', 'Bearer token']],
      sequence: 1,
      ...one,
    });
    const isDead = one.message?.deadSince !== undefined;
    const { tenant, environment, paymentId } = subscription;
    await schedules.write(
      subscriptionKeyOf(tenant, paymentKeyOf(environment, paymentId)),
      0,
      serializeSubscription(subscription),
      [
        { queue: queueNames.poll(subscription), inMs: hourMs },
        ...(isFailing(subscription) ? [{ queue: queueNames.failing(tenant), inMs: hourMs }] : []),
        ...(one.message && !isDead ? [{ queue: queueNames.delivery(tenant), inMs: hourMs }] : []),
        ...(isDead ? [{ queue: queueNames.dead(tenant), inMs: hourMs }] : []),
      ],
    );
  }
  return { schedules, manage: manageStored(schedules) };
}

/** What operators can do with the subscriptions of these schedules. */
export function manageStored(
  schedules: Schedules,
  clients: readonly string[] = ['client'],
): ManageSubscriptions {
  const identities = {
    tenants: () => [
      { name: 'shop', id: 'tenant-1' },
      { name: 'till', id: 'tenant-2' },
    ],
    environments: () => [{ name: 'sandbox', id: 'environment-1' }],
  };
  return createManageSubscriptions({
    ...identities,
    schedules,
    store: createSubscriptionStore(schedules),
    count: createCountSubscriptions({ ...identities, schedules }),
    clients: () => clients,
    paymentKeyOf,
  });
}

const paymentKeyOf = (environmentId: string, paymentId: string) => `${environmentId} ${paymentId}`;
