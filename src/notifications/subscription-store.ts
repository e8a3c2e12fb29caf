/** Where subscriptions are stored: one record for each tenant and payment, in queues for the work that is due on it. */

import { hash } from 'node:crypto';
import type { DueChange, ScheduledRecord, Schedules } from '../state/schedules.ts';
import { parseSubscription, type Subscription, serializeSubscription } from './subscription.ts';

/** The key of the record. @param paymentKey the key of the payment in the shared state */
export const subscriptionKeyOf = (tenantId: string, paymentKey: string): string =>
  hash('sha256', `${tenantId}\n${paymentKey}`, 'base64url').slice(0, 22);

type Owned = Pick<Subscription, 'tenant' | 'environment' | 'url'>;

/** The queues of a subscription. All of one tenant, so that tenants do not wait for each other. */
export const queueNames = {
  /** With a message that is not delivered. */
  delivery: (tenantId: string): string => `deliver:${tenantId}`,
  /** With a message that an endpoint did not accept: due when it accepts another one. An endpoint is one origin of one tenant. */
  endpoint: ({ tenant, url }: Owned): string =>
    `endpoint:${hash('sha256', `${tenant}\n${new URL(url).origin}`, 'base64url').slice(0, 22)}`,
  /** Whose status is to be read. */
  poll: ({ tenant, environment }: Pick<Owned, 'tenant' | 'environment'>): string =>
    `poll:${environment}:${tenant}`,
  /** With a message that was given up. */
  dead: (tenantId: string): string => `dead:${tenantId}`,
} as const;

/** Removes a record from all queues but one, whose lease the caller holds. */
export const removedFromQueues = (subscription: Owned, except?: string): readonly DueChange[] =>
  [
    queueNames.delivery(subscription.tenant),
    queueNames.endpoint(subscription),
    queueNames.poll(subscription),
    queueNames.dead(subscription.tenant),
  ]
    .filter((queue) => queue !== except)
    .map((queue) => ({ queue, inMs: undefined }));

/** A subscription to write, `undefined` to remove it, with its due times. */
export interface SubscriptionChange {
  readonly subscription: Subscription | undefined;
  readonly due: readonly DueChange[];
}

export interface SubscriptionStore {
  /** @throws GatewayError STATE_UNAVAILABLE, here and below */
  read(key: string): Promise<Subscription | undefined>;
  /**
   * Changes a subscription, again if another instance changes it at the same time.
   *
   * @param change receives what is stored; returns `undefined` to leave it as it is. May be called several times
   * @param known  what was read before, to save a read
   */
  change(
    key: string,
    change: (current: Subscription | undefined) => SubscriptionChange | undefined,
    known?: ScheduledRecord,
  ): Promise<void>;
}

export function createSubscriptionStore(schedules: Pick<Schedules, 'read' | 'write'>): SubscriptionStore {
  return {
    async read(key) {
      const record = await schedules.read(key);
      return record && parseSubscription(record.text);
    },
    async change(key, change, known) {
      for (let record = known ?? (await schedules.read(key)); ; record = await schedules.read(key)) {
        const changed = change(record && parseSubscription(record.text));
        if (!changed) return;
        const text = changed.subscription && serializeSubscription(changed.subscription);
        if (await schedules.write(key, record?.version ?? 0, text, changed.due)) return;
      }
    },
  };
}
