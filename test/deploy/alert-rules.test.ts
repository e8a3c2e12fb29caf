/** The alert rules, evaluated by Prometheus (promtool): with given values of the metrics at given times. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { type AlertId, alertRow, guideUrl } from '../../src/alerts/alert-table.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { onPath } from '../kit/on-path.ts';

const promtool = onPath('promtool') ?? '';
const skip =
  promtool === '' && 'there is no promtool, which is a part of Prometheus: apt-get install prometheus';

const rules = join(import.meta.dirname, '../../deploy/prometheus/alerts.yaml');

function run(...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
}

const series = (instance: string, labels: string, values: string) => ({
  series: `penstock_alert{job="penstock",instance="${instance}",${labels}}`,
  values,
});

/** An alert that fires, with the texts of the table. */
function firing(id: AlertId, labels: Readonly<Record<string, string>>) {
  const { condition: summary, action: description, guide } = alertRow(id);
  return { exp_labels: labels, exp_annotations: { summary, description, runbook_url: guideUrl(guide) } };
}

function testRules(t: TestContext, inputs: readonly object[], expected: readonly object[]): void {
  const file = join(temporaryFolder(t), 'test.yaml');
  const tests = [{ interval: '15s', input_series: inputs, alert_rule_test: expected }];
  writeFileSync(
    file,
    stringify({ rule_files: [rules], evaluation_interval: '15s', tests }, { lineWidth: 0 }),
  );
  run('test', 'rules', file);
}

test('the alert rules are valid', { skip }, () => run('check', 'rules', rules));

test('an alert of the gateway fires once for all instances, also while one of them is down, and ends with it', {
  skip,
}, (t) => {
  const labels = 'id="in-doubt",severity="critical",environment="production"';
  testRules(
    t,
    [
      series('a', labels, '_x8 2x40 _x50'),
      series('b', labels, '_x8 2x12 _x10 2x18 _x50'),
      { series: 'up{job="penstock",instance="a"}', values: '1x100' },
      { series: 'up{job="penstock",instance="b"}', values: '1x20 0x10 1x70' },
    ],
    [
      { eval_time: '1m', alertname: 'PenstockInDoubt', exp_alerts: [] },
      ...['3m', '6m30s', '12m'].map((time) => ({
        eval_time: time,
        alertname: 'PenstockInDoubt',
        exp_alerts: [firing('in-doubt', { severity: 'critical', environment: 'production' })],
      })),
      { eval_time: '18m', alertname: 'PenstockInDoubt', exp_alerts: [] },
      { eval_time: '5m30s', alertname: 'PenstockDown', exp_alerts: [] },
      {
        eval_time: '7m',
        alertname: 'PenstockDown',
        exp_alerts: [
          {
            exp_labels: { severity: 'critical', job: 'penstock', instance: 'b' },
            exp_annotations: {
              summary: 'The gateway instance b is down.',
              description: 'Prometheus has not been able to scrape its metrics for 1 minute.',
              runbook_url: guideUrl('run.md'),
            },
          },
        ],
      },
      { eval_time: '9m', alertname: 'PenstockDown', exp_alerts: [] },
    ],
  );
});

test('information fires nothing, and an alert that becomes critical fires as such', { skip }, (t) => {
  testRules(
    t,
    [
      series('a', 'id="in-doubt",severity="info",environment="sandbox"', '1x100'),
      series('a', 'id="circuit-open",severity="warning",environment="production"', '1x20 _x80'),
      series('a', 'id="circuit-open",severity="critical",environment="production"', '_x21 1x79'),
    ],
    [
      { eval_time: '10m', alertname: 'PenstockInDoubt', exp_alerts: [] },
      ...(['warning', 'critical'] as const).map((severity, index) => ({
        eval_time: ['4m', '15m'][index],
        alertname: 'PenstockCircuitOpen',
        exp_alerts: [firing('circuit-open', { severity, environment: 'production' })],
      })),
    ],
  );
});
