/** docs/metrics.md: every metric of the gateway, from their table. */

import { metricsTable } from '../../src/telemetry/metrics-table.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

export const metricsPage = (): string =>
  page([
    '# Metrics',
    generatedFrom('src/telemetry/metrics-table.ts'),
    '`GET /metrics` on the admin listener returns these metrics in the text format of Prometheus. Each instance has its own. ' +
      'Names and labels are stable. The values of labels come from the configuration or from a table, never from a request. ' +
      '`none` means unknown or not applicable; `gateway` in `served_from` means that the gateway generated the response: an error, or the result of a look-up.',
    'prom-client adds the metrics of the process (`process_*`, `nodejs_*`): CPU, memory, garbage collection, and ' +
      '`nodejs_eventloop_lag_*`, the delay of the event loop.',
    '`deploy/prometheus/alerts.yaml` contains alerting rules, `deploy/grafana/penstock.json` a dashboard.',
    table(
      ['metric', 'kind', 'labels', 'description'],
      Object.entries(metricsTable).map(([name, { kind, labels, help }]) => [
        code(name),
        kind,
        labels.map(code).join(', '),
        help,
      ]),
    ),
  ]);
