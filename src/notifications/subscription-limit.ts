/** How many subscriptions a tenant may have: they are stored for weeks, and must not fill the database. */

export interface SubscriptionLimit {
  /** @throws DatabaseError */
  isReached(tenantId: string): Promise<boolean>;
}

interface SubscriptionLimitDependencies {
  /** The number of subscriptions of a tenant. */
  readonly countOf: (tenantId: string) => Promise<number>;
  /** `notifications.maxSubscriptions` */
  readonly max: () => number;
  /** Milliseconds. */
  readonly now: () => number;
}

/** How long a count is used: the limit can be exceeded by what is subscribed within this time. Milliseconds. */
const countedForMs = 1_000;

export function createSubscriptionLimit({
  countOf,
  max,
  now,
}: SubscriptionLimitDependencies): SubscriptionLimit {
  // One for each configured tenant.
  const counts = new Map<string, { readonly atMs: number; readonly count: Promise<number> }>();

  return {
    async isReached(tenant) {
      const known = counts.get(tenant);
      const current =
        known && now() - known.atMs < countedForMs ? known : { atMs: now(), count: countOf(tenant) };
      if (current !== known) {
        counts.set(tenant, current);
        current.count.catch(() => counts.delete(tenant));
      }
      return (await current.count) >= max();
    },
  };
}
