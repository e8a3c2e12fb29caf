/** docs/metrics.md: every metric of the gateway, from their table. */

import { metricsTable } from '../../src/telemetry/metrics-table.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

/** The page. */
export const metricsPage = (): string =>
  page([
    '# Metrics',
    generatedFrom('src/telemetry/metrics-table.ts'),
    "`GET /metrics` on the operators' listener, in the text format of Prometheus. Each instance counts for itself. Names and " +
      'labels are stable. Labels take few values: names of the configuration, or of a table; never anything that came with a ' +
      'request. `none` stands where something is not known or does not apply, `gateway` in `served_from` for its own errors.',
    'Beside these there are the metrics of the process as prom-client names them (`process_*`, `nodejs_*`): CPU, memory, ' +
      'garbage collection, and `nodejs_eventloop_lag_*`, the delay of the event loop.',
    'Rules for alarms: `deploy/prometheus/alerts.yaml`. A dashboard: `deploy/grafana/penstock.json`.',
    table(
      ['metric', 'kind', 'labels', 'what it says'],
      Object.entries(metricsTable).map(([name, { kind, labels, help }]) => [
        code(name),
        kind,
        labels.map(code).join(', '),
        help,
      ]),
    ),
  ]);
