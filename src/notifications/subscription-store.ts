/** Where subscriptions are stored: one record for each tenant and payment, in queues for the work that is due on it. */

import { hash } from 'node:crypto';
import type { DueChange, ScheduledRecord, Schedules } from '../state/former/schedules.ts';
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
  /** Whose reads fail (`isFailing`). Nothing is done when it is due: the queue counts and lists them. */
  failing: (tenantId: string): string => `failing:${tenantId}`,
} as const;

/** Removes a record from all queues but one, whose lease the caller holds. */
export const removedFromQueues = (subscription: Owned, except?: string): readonly DueChange[] =>
  [
    queueNames.delivery(subscription.tenant),
    queueNames.endpoint(subscription),
    queueNames.poll(subscription),
    queueNames.dead(subscription.tenant),
    queueNames.failing(subscription.tenant),
  ]
    .filter((queue) => queue !== except)
    .map((queue) => ({ queue, inMs: undefined }));

/** A subscription to write, `undefined` to remove it, with its due times. */
export interface SubscriptionChange {
  readonly subscription: Subscription | undefined;
  readonly due: readonly DueChange[];
}

type ChangeSubscription = (current: Subscription | undefined) => SubscriptionChange | undefined;

/**
 * When a record is due again that this instance cannot read, or whose client or environment is not in its settings. Soon after the
 * last change, because another instance may have other keys or settings; then less and less often. Milliseconds.
 */
export const otherInstanceDelayMs = ({ version }: ScheduledRecord, nowMs: number): number =>
  Math.min(longestDelayMs, Math.max(shortestDelayMs, (nowMs - version) / 10)); // a version is the time of its change

const shortestDelayMs = 5_000;
const longestDelayMs = 6 * 3_600_000;

export interface SubscriptionStore {
  /** @throws GatewayError STATE_UNAVAILABLE, here and below */
  read(key: string): Promise<Subscription | undefined>;
  /**
   * Changes a subscription, again if another instance changes it at the same time.
   *
   * @param change receives what is stored; returns `undefined` to leave it as it is. May be called several times. It is not called for a
   *   record that this instance cannot read, because another one may be able to; such a record does not change
   * @param known  what was read before, to save a read
   */
  change(key: string, change: ChangeSubscription, known?: ScheduledRecord): Promise<void>;
  /** As `change`, but takes a record that this instance cannot read for none. */
  replace(key: string, change: ChangeSubscription): Promise<void>;
}

export function createSubscriptionStore(schedules: Pick<Schedules, 'read' | 'write'>): SubscriptionStore {
  async function update(
    key: string,
    change: ChangeSubscription,
    replacesUnreadable: boolean,
    known?: ScheduledRecord,
  ): Promise<void> {
    for (let record = known ?? (await schedules.read(key)); ; record = await schedules.read(key)) {
      const current = record && parseSubscription(record.text);
      if (record && !current && !replacesUnreadable) return;
      const changed = change(current);
      if (!changed) return;
      const text = changed.subscription && serializeSubscription(changed.subscription);
      if (await schedules.write(key, record?.version ?? 0, text, changed.due)) return;
    }
  }

  return {
    async read(key) {
      const record = await schedules.read(key);
      return record && parseSubscription(record.text);
    },
    change: (key, change, known) => update(key, change, false, known),
    replace: (key, change) => update(key, change, true),
  };
}
