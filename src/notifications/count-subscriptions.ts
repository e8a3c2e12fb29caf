/** How many subscriptions and messages there are in the shared state: for the gauges, which are equal on every instance, and operators. */

import type { Schedules } from '../state/former/schedules.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { queueNames } from './subscription-store.ts';

interface CountDependencies {
  readonly schedules: Pick<Schedules, 'count'>;
  readonly tenants: () => readonly NamedIdentity[];
  readonly environments: () => readonly NamedIdentity[];
}

/** A tenant or an environment of the configuration. */
export interface NamedIdentity {
  readonly name: string;
  readonly id: string;
}

/** How many subscriptions a tenant has. */
export interface SubscriptionCounts {
  readonly tenant: string;
  /** Those whose status is read. */
  readonly active: number;
  /** Of these, those whose read is due. */
  readonly overdue: number;
  /** Of these, those whose reads fail. */
  readonly failing: number;
  readonly undelivered: number;
  readonly dead: number;
}

/** Counts the subscriptions of each tenant. @throws GatewayError STATE_UNAVAILABLE */
export type CountSubscriptions = () => Promise<readonly SubscriptionCounts[]>;

export function createCountSubscriptions({
  schedules,
  tenants,
  environments,
}: CountDependencies): CountSubscriptions {
  async function countOf({ name, id: tenant }: NamedIdentity): Promise<SubscriptionCounts> {
    const polls = environments().map(({ id: environment }) =>
      schedules.count(queueNames.poll({ tenant, environment })),
    );
    const [undelivered, dead, failing, ...polled] = await Promise.all([
      schedules.count(queueNames.delivery(tenant)),
      schedules.count(queueNames.dead(tenant)),
      schedules.count(queueNames.failing(tenant)),
      ...polls,
    ]);
    return {
      tenant: name,
      active: sum(polled.map(({ all }) => all)),
      overdue: sum(polled.map(({ due }) => due)),
      failing: failing.all,
      undelivered: undelivered.all,
      dead: dead.all,
    };
  }

  return () => Promise.all(tenants().map(countOf));
}

/** @returns counts again for the gauges, which keep the last numbers if the shared state is unavailable */
export function createSubscriptionGauges(count: CountSubscriptions, metrics: Metrics): () => Promise<void> {
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
  return async () => {
    counts = await count().catch(() => counts);
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
