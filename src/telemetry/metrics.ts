/** What is counted, as Prometheus reads it. Only this file knows prom-client. */

import { Counter, Registry } from 'prom-client';

export interface Metrics {
  /** Counts a status read by how it was answered: hit, stale, shared, miss, request, bypass. */
  statusRead(verdict: string, environment: string): void;
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
  return {
    statusRead: (verdict, environment) =>
      statusReads.inc({ operation: 'getPaymentStatus', environment, verdict }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
