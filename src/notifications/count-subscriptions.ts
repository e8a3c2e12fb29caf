/** The gauges of subscriptions and their messages, counted in the shared state. Every instance reports the same numbers. */

import type { Schedules } from '../state/schedules.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { NamedIdentity } from './manage-subscriptions.ts';
import { queueNames } from './subscription-store.ts';

interface CountDependencies {
  readonly schedules: Pick<Schedules, 'count'>;
  readonly tenants: () => readonly NamedIdentity[];
  readonly environments: () => readonly NamedIdentity[];
  readonly metrics: Metrics;
}

interface Counts {
  readonly tenant: string;
  readonly active: number;
  readonly overdue: number;
  readonly undelivered: number;
  readonly dead: number;
}

/** @returns counts again; the gauges keep the last numbers if the shared state is unavailable */
export function createSubscriptionCounts({
  schedules,
  tenants,
  environments,
  metrics,
}: CountDependencies): () => Promise<void> {
  let counts: readonly Counts[] = [];
  const gauge = (state: Exclude<keyof Counts, 'tenant'>) =>
    counts.map((count) => ({ labels: { tenant: count.tenant, state }, value: count[state] }));
  metrics.addGaugeSource('penstock_subscriptions', () => [
    ...gauge('active'),
    ...gauge('overdue'),
    ...gauge('undelivered'),
    ...gauge('dead'),
  ]);

  async function countOf({ name, id: tenant }: NamedIdentity): Promise<Counts> {
    const polls = environments().map(({ id: environment }) =>
      schedules.count(queueNames.poll({ tenant, environment })),
    );
    const [undelivered, dead, ...polled] = await Promise.all([
      schedules.count(queueNames.delivery(tenant)),
      schedules.count(queueNames.dead(tenant)),
      ...polls,
    ]);
    return {
      tenant: name,
      active: sum(polled.map(({ all }) => all)),
      overdue: sum(polled.map(({ due }) => due)),
      undelivered: undelivered.all,
      dead: dead.all,
    };
  }

  return async () => {
    const all = await Promise.all(tenants().map(countOf)).catch(() => undefined);
    counts = all ? [...Map.groupBy(all, ({ tenant }) => tenant)].map(merge) : counts;
  };
}

/** A tenant that others were merged into has several identities. */
const merge = ([tenant, counts]: readonly [string, readonly Counts[]]): Counts => ({
  tenant,
  active: sum(counts.map(({ active }) => active)),
  overdue: sum(counts.map(({ overdue }) => overdue)),
  undelivered: sum(counts.map(({ undelivered }) => undelivered)),
  dead: sum(counts.map(({ dead }) => dead)),
});

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
