/** How many subscriptions and messages the database has: for the gauges, which are equal on every instance, and for operators. */

import {
  type SubscriptionCounts as CountsOfTenant,
  noSubscriptions,
  type SubscriptionTable,
} from '../store/subscriptions.ts';
import type { Metrics } from '../telemetry/metrics.ts';

interface CountDependencies {
  readonly table: Pick<SubscriptionTable, 'count'>;
  readonly tenants: () => readonly NamedIdentity[];
}

/** A tenant or an environment of the configuration. */
export interface NamedIdentity {
  readonly name: string;
  readonly id: string;
}

export interface SubscriptionCounts extends CountsOfTenant {
  /** The name. */
  readonly tenant: string;
}

/** Counts the subscriptions of each tenant. @throws DatabaseError */
export type CountSubscriptions = () => Promise<readonly SubscriptionCounts[]>;

export const createCountSubscriptions =
  ({ table, tenants }: CountDependencies): CountSubscriptions =>
  async () => {
    const counts = await table.count();
    return tenants().map(({ name, id }) => ({ tenant: name, ...(counts.get(id) ?? noSubscriptions) }));
  };

export interface SubscriptionGauges {
  /** The last numbers. */
  counts(): readonly SubscriptionCounts[];
  /** Counts again. Never rejects: if the database is unavailable, the last numbers remain. */
  refresh(): Promise<void>;
}

export function createSubscriptionGauges(count: CountSubscriptions, metrics: Metrics): SubscriptionGauges {
  let counts: readonly SubscriptionCounts[] = [];
  const gauge = (state: Exclude<keyof SubscriptionCounts, 'tenant'>) =>
    counts.map((one) => ({ labels: { tenant: one.tenant, state }, value: one[state] }));
  metrics.addGaugeSource('penstock_subscriptions', () => [
    ...gauge('active'),
    ...gauge('overdue'),
    ...gauge('failing'),
    ...gauge('undelivered'),
    ...gauge('dead'),
  ]);
  return {
    counts: () => counts,
    async refresh() {
      counts = await count().catch(() => counts);
    },
  };
}
