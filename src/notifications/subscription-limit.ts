/** How many subscriptions a tenant may have: they are stored for weeks, and must not fill the shared state. */

import type { Schedules } from '../state/former/schedules.ts';
import { queueNames } from './subscription-store.ts';

export interface SubscriptionLimit {
  /** @throws GatewayError STATE_UNAVAILABLE */
  isReached(tenantId: string): Promise<boolean>;
}

interface SubscriptionLimitDependencies {
  readonly schedules: Pick<Schedules, 'count'>;
  readonly environmentIds: () => readonly string[];
  /** `notifications.maxSubscriptions` */
  readonly max: () => number;
  /** Milliseconds. */
  readonly now: () => number;
}

/** How long a count is used: the limit can be exceeded by what is subscribed within this time. Milliseconds. */
const countedForMs = 1_000;

/** A subscription with an undelivered message is in two queues, and counts twice. */
export function createSubscriptionLimit({
  schedules,
  environmentIds,
  max,
  now,
}: SubscriptionLimitDependencies): SubscriptionLimit {
  // One for each configured tenant.
  const counts = new Map<string, { readonly atMs: number; readonly count: Promise<number> }>();

  async function count(tenant: string): Promise<number> {
    const queues = [
      ...environmentIds().map((environment) => queueNames.poll({ tenant, environment })),
      queueNames.delivery(tenant),
      queueNames.dead(tenant),
    ];
    const counted = await Promise.all(queues.map((queue) => schedules.count(queue)));
    return counted.reduce((sum, { all }) => sum + all, 0);
  }

  return {
    async isReached(tenant) {
      const known = counts.get(tenant);
      const current =
        known && now() - known.atMs < countedForMs ? known : { atMs: now(), count: count(tenant) };
      if (current !== known) {
        counts.set(tenant, current);
        current.count.catch(() => counts.delete(tenant));
      }
      return (await current.count) >= max();
    },
  };
}
