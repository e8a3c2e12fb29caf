/** What is counted, as Prometheus reads it. Only this file knows prom-client. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type LabelsOf, metricsTable, type Named } from './metrics-table.ts';

export interface Metrics {
  /** Counts one more. */
  count<Name extends Named<'counter'>>(name: Name, labels: LabelsOf<Name>): void;
  /** @param value in the unit of the metric's name */
  set<Name extends Named<'gauge'>>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Notes one value. @param value in the unit of the metric's name */
  note<Name extends Named<'histogram'>>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Forgets a gauge's values, before those that there still are are set. */
  clear(name: Named<'gauge'>): void;
  /** Everything counted so far, and of the process as prom-client tells it, in the text format of Prometheus. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Nothing is counted yet; every gateway counts for itself. @param refresh sets what is only looked at when it is read */
export function createMetrics(refresh: (metrics: Metrics) => void = () => {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, { kind, help, labels, ...row }] of Object.entries(metricsTable)) {
    const shape = { name, help, labelNames: [...labels], registers };
    if (kind === 'counter') counters.set(name, new Counter(shape));
    if (kind === 'gauge') gauges.set(name, new Gauge(shape));
    if ('buckets' in row) histograms.set(name, new Histogram({ ...shape, buckets: [...row.buckets] }));
  }
  const metrics: Metrics = {
    count: (name, labels) => counters.get(name)?.inc(labels),
    set: (name, labels, value) => gauges.get(name)?.set(labels, value),
    note: (name, labels, value) => histograms.get(name)?.observe(labels, value),
    clear: (name) => gauges.get(name)?.reset(),
    async text() {
      refresh(metrics);
      return (await Promise.all([registry.metrics(), ofProcess().metrics()])).join('\n');
    },
    contentType: registry.contentType,
  };
  return metrics;
}

let processRegistry: Registry | undefined;

/** Memory, CPU, garbage collection, the event loop's delay: of the process, however many gateways it holds. */
function ofProcess(): Registry {
  if (processRegistry) return processRegistry;
  processRegistry = new Registry();
  collectDefaultMetrics({ register: processRegistry });
  return processRegistry;
}
