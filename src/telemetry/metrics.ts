/** The metrics of one gateway in the text format of Prometheus. Only this file knows prom-client. */

import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import { type BoundHistogram, createHistogram, type Histogram } from './histogram.ts';
import { createLabelledValues, type LabelledValues, type Labels } from './labelled-values.ts';
import { type LabelsOfMetric, type MetricName, type MetricRow, metricsTable } from './metrics-table.ts';

export interface Metrics {
  /** Adds to a counter. @param by 1 by default, otherwise in the unit of the metric's name */
  increment<Name extends MetricName<'counter'>>(name: Name, labels: LabelsOfMetric<Name>, by?: number): void;
  /** Sets a gauge that has no source. @param value in the unit of the metric's name */
  set<Name extends MetricName<'gauge'>>(name: Name, labels: LabelsOfMetric<Name>, value: number): void;
  /** One combination of labels of a counter, for frequent use. It has the value 0 from now on. */
  counter<Name extends MetricName<'counter'>>(name: Name, labels: LabelsOfMetric<Name>): BoundCounter;
  /** One combination of labels of a histogram. Values are in the unit of the metric's name. */
  histogram<Name extends MetricName<'histogram'>>(name: Name, labels: LabelsOfMetric<Name>): BoundHistogram;
  /**
   * Registers a source of a gauge's values, read at every scrape. A gauge may have several sources.
   *
   * @returns removes the source together with its values
   */
  addGaugeSource<Name extends MetricName<'gauge'>>(
    name: Name,
    read: () => readonly GaugeSample<LabelsOfMetric<Name>>[],
  ): () => void;
  /** All metrics of the table and, from prom-client, those of the process. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** One value of a gauge, in the unit of the metric's name. */
export interface GaugeSample<GaugeLabels = Labels> {
  readonly labels: GaugeLabels;
  readonly value: number;
}

export interface BoundCounter {
  value: number;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const counters = new Map<string, LabelledValues<BoundCounter>>();
  const gauges = new Map<string, SourcedGauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, row] of Object.entries<MetricRow>(metricsTable)) {
    const { kind, help, labels, buckets = [] } = row;
    const options = { name, help, labelNames: [...labels], registers };
    if (kind === 'counter') counters.set(name, registerCounter(options));
    if (kind === 'gauge') gauges.set(name, registerGauge(options));
    if (kind === 'histogram') histograms.set(name, registerHistogram(options, buckets));
  }
  const counter: Metrics['counter'] = (name, labels) => counters.get(name)?.of(labels) ?? missingMetric(name);
  return {
    increment(name, labels, by = 1) {
      counter(name, labels).value += by;
    },
    counter,
    histogram: (name, labels) => histograms.get(name)?.of(labels) ?? missingMetric(name),
    set: (name, labels, value) => gauges.get(name)?.gauge.set(labels, value),
    addGaugeSource(name, read) {
      const sourced = gauges.get(name);
      sourced?.sources.add(read);
      return () => {
        sourced?.sources.delete(read);
        if (sourced?.sources.size === 0) sourced.gauge.reset();
      };
    },
    async text() {
      return (await Promise.all([registry.metrics(), processMetrics().metrics()])).join('\n');
    },
    contentType: registry.contentType,
  };
}

function missingMetric(name: string): never {
  throw new Error(`there is no metric ${name}`);
}

interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
}

/** A counter whose values prom-client gets at a scrape only. */
function registerCounter(options: MetricOptions): LabelledValues<BoundCounter> {
  const values = createLabelledValues(options.labelNames, () => ({ value: 0 }));
  new Counter({
    ...options,
    collect() {
      this.reset();
      for (const { labels, value: counter } of values.all()) this.inc(labels, counter.value);
    },
  });
  return values;
}

interface SourcedGauge {
  readonly gauge: Gauge;
  readonly sources: Set<() => readonly GaugeSample[]>;
}

function registerGauge(options: MetricOptions): SourcedGauge {
  const sources: SourcedGauge['sources'] = new Set();
  const gauge = new Gauge({
    ...options,
    collect() {
      if (sources.size === 0) return;
      this.reset();
      if (options.labelNames.length === 0) this.remove(); // a reset sets it to 0, although a source may know no value
      for (const read of sources) for (const { labels, value } of read()) this.set(labels, value);
    },
  });
  return { gauge, sources };
}

/** Not prom-client's own histogram, which concatenates the labels for each value. */
function registerHistogram(
  { name, help, labelNames, registers }: MetricOptions,
  bounds: readonly number[],
): Histogram {
  const histogram = createHistogram(name, labelNames, bounds);
  const metric = {
    name,
    get: async () => ({ name, help, type: 'histogram', values: histogram.samples() }),
  };
  // A registry calls nothing else of a metric; its type demands the whole class.
  for (const registry of registers) registry.registerMetric(metric as unknown as Metric);
  return histogram;
}

let processRegistry: Registry | undefined;

/** Memory, CPU, garbage collection, event loop delay: one registry, however many gateways the process contains. */
function processMetrics(): Registry {
  if (processRegistry) return processRegistry;
  processRegistry = new Registry();
  collectDefaultMetrics({ register: processRegistry });
  return processRegistry;
}
