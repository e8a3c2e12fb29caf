/**
 * Parses the text format of Prometheus (version 0.0.4), and fails on invalid input.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */

import assert from 'node:assert/strict';

export interface MetricSample {
  /** Including `_bucket`, `_sum` or `_count` for a histogram. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly MetricSample[];
}

const sampleLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const labelPart = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/gy;
const suffixes = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] };

/** Families by name. Each occurs once, with HELP and TYPE before its samples; samples are unique, buckets cumulative. */
export function parsePrometheus(text: string): ReadonlyMap<string, MetricFamily> {
  assert.ok(text.endsWith('\n'), 'the last line ends with a line break');
  const families = new Map<string, { type: string; help: string; samples: MetricSample[] }>();
  const seen = new Set<string>();
  let name = '';
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, keyword, subject = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      assert.ok(!families.has(subject), `${subject} occurs twice`);
      families.set(subject, { type: '', help: rest, samples: [] });
      name = subject;
    } else if (keyword === 'TYPE') {
      assert.equal(subject, name);
      assert.match(rest, /^(counter|gauge|histogram|summary)$/);
      Object.assign(families.get(subject) ?? {}, { type: rest });
    } else {
      const family = families.get(name) ?? assert.fail(`no family before ${line}`);
      const sample = sampleOf(line);
      const ends = suffixes[family.type as 'histogram'] ?? ['']; // any other type has none
      assert.ok(
        ends.some((end) => sample.name === name + end),
        `${sample.name} is not a sample of ${name}`,
      );
      const key = JSON.stringify([sample.name, Object.entries(sample.labels).toSorted()]);
      assert.ok(!seen.has(key), `duplicate sample: ${line}`);
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const [family, { type, samples }] of families)
    if (type === 'histogram') assertCumulative(family, samples);
  return families;
}

function sampleOf(line: string): MetricSample {
  const [, name = '', labels = '', value = ''] =
    sampleLine.exec(line) ?? assert.fail(`not a sample: ${line}`);
  labelPart.lastIndex = 0;
  const found = [...labels.matchAll(labelPart)];
  assert.equal(found.map(([part]) => part).join(''), labels, line);
  // Go's ParseFloat accepts NaN in any letter case.
  assert.ok(value === '+Inf' || /^nan$/i.test(value) || Number.isFinite(Number(value)), line);
  return {
    name,
    labels: Object.fromEntries(found.map(([, label = '', text = '']) => [label, text])),
    value: Number(value.replace('+Inf', 'Infinity')),
  };
}

function assertCumulative(family: string, samples: readonly MetricSample[]): void {
  const last = new Map<string, number>();
  for (const { name, labels, value } of samples) {
    const { le, ...series } = labels;
    const key = JSON.stringify(series);
    if (name === `${family}_bucket`) {
      assert.ok(value >= (last.get(key) ?? 0), `${name} shrinks at ${le}`);
      last.set(key, value);
    }
    if (name === `${family}_count`) assert.equal(value, last.get(key), `${name} equals the last bucket`);
  }
}
