/** The rules for Prometheus and docs/operations/alerts.md, from the table of alerts. */

import { type AlertRow, alertTable, guideUrl } from '../../src/alerts/alert-table.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

const rows = Object.entries<AlertRow>(alertTable);

const isPaged = ({ severities }: AlertRow) => severities.some((severity) => severity !== 'info');

/** deploy/prometheus/alerts.yaml; and in the chart, which can only read files in its own folder. */
export const prometheusAlerts =
  (): string => `# Generated from src/alerts/alert-table.ts by \`npm run docs\`; edit the source.
# The gateway evaluates the alerts over all instances, and each instance has the result as penstock_alert. Only what no instance can
# tell is evaluated by Prometheus. Every instance is a target of the job "penstock".
groups:
  - name: penstock
    rules:
${[downRule, ...rows.filter(([, row]) => isPaged(row)).map(([id, row]) => ruleOf(id, row))].join('\n')}`;

const downRule = `      - alert: PenstockDown
        expr: up{job="penstock"} == 0
        for: 1m
        labels: { severity: critical }
        annotations:
          summary: The gateway instance {{ $labels.instance }} is down.
          description: Prometheus has not been able to scrape its metrics for 1 minute.
          runbook_url: ${guideUrl('run.md')}
`;

/** The severity is a label of the metric. */
const ruleOf = (
  id: string,
  { condition, action, guide }: AlertRow,
) => `      - alert: Penstock${pascalCase(id)}
        expr: max by (severity, environment) (penstock_alert{id="${id}",severity!="info"}) > 0
        annotations:
          summary: ${JSON.stringify(condition)}
          description: ${JSON.stringify(action)}
          runbook_url: ${guideUrl(guide)}
`;

const pascalCase = (id: string) => id.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** docs/operations/alerts.md */
export const alertsPage = (): string =>
  page([
    '# Alerts',
    generatedFrom('src/alerts/alert-table.ts'),
    'The gateway itself finds what needs attention, over all instances, every second. An alert is there at most 15 seconds after its cause; ' +
      'it says since when, and what to do. It ends by itself; most alerts stay for 20 seconds after the end of their condition, and say so, so that a condition that comes and goes is one alert.',
    '- `penstock status` prints them on one screen, with the exit code 0, 1 (somebody must act) or 2 (customers cannot pay, or money is uncertain).\n' +
      '- `GET /api/alerts` and the [console](console.md) show the same.\n' +
      '- Each instance has the metric `penstock_alert`, and [deploy/prometheus/alerts.yaml](../../deploy/prometheus/alerts.yaml) notifies you of every kind below that is not only information. The name there is `Penstock` and the id, such as `PenstockInDoubt`.',
    '`critical`: customers cannot pay, or money is uncertain. `warning`: somebody must act. `info`: good to know. Alerts of initiations need initiations: ' +
      'with less than one in two seconds, they take until five or six have failed, and with less than one a minute, until three or four have; 401 and 403 with codes that single TPPs cause need half of the last minute, so at a steady rate they take 30 seconds; refusals with other codes take up to 30 seconds as well; a slow bank is found with five in 10 seconds. ' +
      'Such an alert is over when initiations succeed again, not when nobody tries to pay: at least three within 20 seconds to five minutes, and so many that they are no chance. ' +
      'A critical alert that is over counts as a warning until it goes.',
    table(
      ['id', 'severity', 'raised when', 'what to do'],
      rows.map(([id, { severities, condition, action, guide }]) => [
        code(id),
        severities.join(', '),
        condition,
        `${action} [More](${guide})`,
      ]),
    ),
  ]);
