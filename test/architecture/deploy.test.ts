/** Alarms and dashboards ask only for metrics and labels that there are. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { metricsTable } from '../../src/telemetry/metrics-table.ts';
import { parsePrometheus } from '../kit/prometheus.ts';

const textOf = (file: string) => readFileSync(join(import.meta.dirname, '../../deploy', file), 'utf8');

/** As Prometheus reads them: https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/ */
const rulesShape = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string().min(1),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Penstock[A-Za-z]+$/),
          expr: z.string().min(1),
          for: z
            .string()
            .regex(/^\d+[smh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(['warning', 'critical']) }).optional(),
          annotations: z.strictObject({
            summary: z.string().min(1),
            description: z.string().min(1),
            runbook_url: z.url(), // test/docs/links.test.ts follows it
          }),
        }),
      ),
    }),
  ),
});

const dashboardShape = z.object({
  panels: z.array(
    z.object({
      title: z.string().min(1),
      targets: z.array(z.object({ expr: z.string().min(1), legendFormat: z.string().min(1) })).min(1),
    }),
  ),
});

const rules = rulesShape
  .parse(parse(textOf('prometheus/alerts.yaml')))
  .groups.flatMap(({ rules: all }) => all);
const { panels } = dashboardShape.parse(JSON.parse(textOf('grafana/penstock.json')));
const targets = panels.flatMap(({ targets: all }) => all);
const asked = [...rules, ...targets].map(({ expr }) => expr);

/** Added by Prometheus to every sample that it reads. */
const ofPrometheus = ['job', 'instance'];
const families = parsePrometheus(await createMetrics().text());

/** Which labels a metric has; `undefined` if there is no such metric. */
function labelsOf(name: string): readonly string[] | undefined {
  const [, base = '', part] = /^(.*?)(_bucket|_sum|_count)?$/.exec(name) ?? [];
  const row = Object.entries(metricsTable).find(([own]) => own === name || own === base);
  if (row) {
    const [own, { kind, labels }] = row;
    if ((kind === 'histogram') !== (own !== name)) return undefined;
    return [...labels, ...ofPrometheus, ...(part === '_bucket' ? ['le'] : [])];
  }
  return families.has(name) || name === 'up' ? ofPrometheus : undefined;
}

/** Every metric in an expression, with the labels in its braces. */
const metricsIn = (expr: string) =>
  Array.from(
    expr.matchAll(/\b((?:penstock|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g),
    ([, name = '', braces = '']) => ({
      name,
      labels: Array.from(braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g), ([, label = '']) => label),
    }),
  );

describe('the dashboards and alert rules', () => {
  test('query only metrics that exist, with labels that they have', () => {
    for (const expr of asked) {
      const found = metricsIn(expr);
      assert.ok(found.length > 0, expr);
      const [, ...groups] = expr.split(/\bby \(/);
      const grouped = groups.flatMap((rest) => rest.slice(0, rest.indexOf(')')).split(/,\s*/));
      for (const { name, labels } of found) {
        const known = labelsOf(name) ?? assert.fail(`there is no ${name}: ${expr}`);
        for (const label of [...labels, ...grouped]) assert.ok(known.includes(label), `${name}{${label}}`);
      }
    }
  });

  test('show only labels that the expression keeps', () => {
    for (const { expr, legendFormat } of targets)
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        assert.ok(label === 'instance' || expr.includes(label), `${label} of ${expr}`);
  });

  test('give every alert and every panel a unique name', () => {
    for (const names of [rules.map(({ alert }) => alert), panels.map(({ title }) => title)])
      assert.equal(new Set(names).size, names.length);
  });

  test('contain expressions with balanced brackets', () => {
    for (const expr of asked)
      for (const [open, close] of ['()', '{}', '[]'] as const)
        assert.equal(expr.split(String(open)).length, expr.split(String(close)).length, expr);
  });

  test('use every metric of the gateway except the build information', () => {
    const used = asked.flatMap(metricsIn).map(({ name }) => name.replace(/_(bucket|sum|count)$/, ''));
    const unused = Object.keys(metricsTable).filter((name) => !used.includes(name));
    assert.deepEqual(unused, ['penstock_build_info']);
  });
});
