/** What is counted, as Prometheus reads it. Only this file knows prom-client. */

import { Counter, Gauge, Registry } from 'prom-client';

export interface Metrics {
  /** Counts a status read by how it was answered: hit, stale, shared, miss, request, bypass. */
  statusRead(verdict: string, environment: string): void;
  /** Sets how many payments are in doubt, of all instances. */
  doubts(count: number): void;
  /** Everything counted so far, in the text format of Prometheus. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Nothing is counted yet; every gateway counts for itself. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const statusReads = new Counter({
    name: 'penstock_status_reads_total',
    help: 'Status reads, by how they were answered.',
    labelNames: ['operation', 'environment', 'verdict'],
    registers: [registry],
  });
  const doubts = new Gauge({
    name: 'penstock_in_doubt',
    help: 'Payments of which nobody knows whether the bank has carried them out, of all instances.',
    registers: [registry],
  });
  return {
    doubts: (count) => doubts.set(count),
    statusRead: (verdict, environment) =>
      statusReads.inc({ operation: 'getPaymentStatus', environment, verdict }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
