/** What is counted, as Prometheus reads it: prom-client writes it down. Only this file knows prom-client. */

import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import { createHistogram, type Histogram } from './histogram.ts';
import { createLabelledValues, type LabelledValues } from './labelled-values.ts';
import { type LabelsOfMetric, type MetricName, type MetricRow, metricsTable } from './metrics-table.ts';

export interface Metrics {
  /** Counts one more. */
  count<Name extends MetricName<'counter'>>(name: Name, labels: LabelsOfMetric<Name>): void;
  /** @param value in the unit of the metric's name */
  set<Name extends MetricName<'gauge'>>(name: Name, labels: LabelsOfMetric<Name>, value: number): void;
  /** Notes one value. @param value in the unit of the metric's name */
  note<Name extends MetricName<'histogram'>>(name: Name, labels: LabelsOfMetric<Name>, value: number): void;
  /** Forgets a gauge's values, before those that there still are are set. */
  clear(name: MetricName<'gauge'>): void;
  /** Everything counted so far, and of the process as prom-client tells it, in the text format of Prometheus. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Nothing is counted yet; every gateway counts for itself. @param refresh sets what is only looked at when it is read */
export function createMetrics(refresh: (metrics: Metrics) => void = () => {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const counters = new Map<string, LabelledValues<CounterValue>>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, row] of Object.entries<MetricRow>(metricsTable)) {
    const { kind, help, labels, buckets = [] } = row;
    const shape = { name, help, labelNames: [...labels], registers };
    if (kind === 'counter') counters.set(name, registerCounter(shape));
    if (kind === 'gauge') gauges.set(name, new Gauge(shape));
    if (kind === 'histogram') histograms.set(name, registerHistogram(shape, buckets));
  }
  const metrics: Metrics = {
    count(name, labels) {
      const count = counters.get(name)?.of(labels);
      if (count) count.value += 1;
    },
    set: (name, labels, value) => gauges.get(name)?.set(labels, value),
    note: (name, labels, value) => histograms.get(name)?.observe(labels, value),
    clear: (name) => gauges.get(name)?.reset(),
    async text() {
      refresh(metrics);
      return (await Promise.all([registry.metrics(), processMetrics().metrics()])).join('\n');
    },
    contentType: registry.contentType,
  };
  return metrics;
}

/** What every metric has. */
interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
}

interface CounterValue {
  value: number;
}

/** A counter that prom-client is told of when it is read. */
function registerCounter(options: MetricOptions): LabelledValues<CounterValue> {
  const counts = createLabelledValues(options.labelNames, () => ({ value: 0 }));
  new Counter({
    ...options,
    collect() {
      this.reset();
      for (const { labels, tally } of counts.all()) this.inc(labels, tally.value);
    },
  });
  return counts;
}

/** A histogram of ours: prom-client's own makes a text of the labels for each value, and cannot be told of many at once. */
function registerHistogram(
  { name, help, labelNames, registers }: MetricOptions,
  bounds: readonly number[],
): Histogram {
  const histogram = createHistogram(name, labelNames, bounds);
  const metric = {
    name,
    get: async () => ({ name, help, type: 'histogram', values: histogram.samples() }),
  };
  // All that a registry asks of a metric; its type wants the class.
  for (const registry of registers) registry.registerMetric(metric as unknown as Metric);
  return histogram;
}

let processRegistry: Registry | undefined;

/** Memory, CPU, garbage collection, the event loop's delay: of the process, however many gateways it holds. */
function processMetrics(): Registry {
  if (processRegistry) return processRegistry;
  processRegistry = new Registry();
  collectDefaultMetrics({ register: processRegistry });
  return processRegistry;
}
