/** The status reads that wait for a change, as the gateway counts them. */

import { callAdminApi } from './admin-api.ts';
import type { GatewayUnderTest } from './gateway.ts';
import { parsePrometheus } from './prometheus.ts';
import { until } from './within.ts';

type AdminListener = Pick<GatewayUnderTest, 'adminUrl'>;

/** The number of open listeners of a kind. */
export const statusListenersOf = (gateway: AdminListener, kind: 'wait' | 'stream'): Promise<number> =>
  metricOf(gateway, 'penstock_status_listeners', { kind });

/** Waits until the gateways together have so many open listeners. */
export function untilListening(
  gateways: readonly AdminListener[],
  kind: 'wait' | 'stream',
  count: number,
): Promise<void> {
  let found = 0;
  return until(
    20_000,
    () => `${count} listeners are open; there are ${found}`,
    async () => {
      const counts = await Promise.all(gateways.map((gateway) => statusListenersOf(gateway, kind)));
      found = counts.reduce((sum, one) => sum + one, 0);
      return found === count;
    },
  );
}

/** The sum of the samples of a metric that have these labels. @param name with the suffix of a histogram, if it is one */
export async function metricOf(
  gateway: AdminListener,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const { text } = await callAdminApi(gateway, 'GET', '/metrics');
  const family = parsePrometheus(text).get(name.replace(/_(count|sum|bucket)$/, ''));
  const samples = (family?.samples ?? []).filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return samples.reduce((sum, { value }) => sum + value, 0);
}
