/** What is counted, as Prometheus reads it. Only this file knows prom-client. */

import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  /** Counts a status read by how it was answered: hit, stale, shared, miss, request, bypass. */
  statusRead(verdict: string, environment: string): void;
  /** Sets how many payments are in doubt, of all instances. */
  doubts(count: number): void;
  /** Sets the state of a circuit: closed, open, half-open or probation. */
  circuit(environment: string, lane: string, state: string): void;
  /** Notes how long a call has waited for its turn, in milliseconds. */
  queueWait(environment: string, lane: string, waitedMs: number): void;
  /** Counts a call that was not sent because its turn did not come, by the error's code. */
  queueRefusal(environment: string, lane: string, code: string): void;
  /** Sets whether this instance shapes its calls alone, without the shared state. */
  shapingAlone(alone: boolean): void;
  /** Sets what is shed because the gateway does not keep up: nothing, status-reads or everything. */
  shedding(what: string): void;
  /** Counts a connection that was closed because there are too many. */
  connectionRefused(): void;
  /** Everything counted so far, in the text format of Prometheus. */
  text(): Promise<string>;
  readonly contentType: string;
}

const circuitStates = ['closed', 'open', 'half-open', 'probation'] as const;
const sheddings = ['nothing', 'status-reads', 'everything'] as const;

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
  const circuits = new Gauge({
    name: 'penstock_circuit_state',
    help: 'The state of each circuit, as measured: 1 for the one it is in.',
    labelNames: ['environment', 'lane', 'state'],
    registers: [registry],
  });
  const queueWaits = new Histogram({
    name: 'penstock_queue_wait_seconds',
    help: 'How long calls have waited for their turn.',
    labelNames: ['environment', 'lane'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 3, 10],
    registers: [registry],
  });
  const queueRefusals = new Counter({
    name: 'penstock_queue_refusals_total',
    help: 'Calls that were not sent because their turn did not come, by error code.',
    labelNames: ['environment', 'lane', 'code'],
    registers: [registry],
  });
  const alone = new Gauge({
    name: 'penstock_shaping_alone',
    help: 'Whether this instance shapes its calls with a part of the rate for itself, without the shared state.',
    registers: [registry],
  });
  const shed = new Gauge({
    name: 'penstock_shedding',
    help: 'What is refused because the gateway does not keep up: 1 for what it is.',
    labelNames: ['what'],
    registers: [registry],
  });
  const refusedConnections = new Counter({
    name: 'penstock_connections_refused_total',
    help: 'Connections of TPP systems that were closed because there are too many.',
    registers: [registry],
  });
  return {
    shedding(what) {
      for (const each of sheddings) shed.set({ what: each }, Number(each === what));
    },
    connectionRefused: () => refusedConnections.inc(),
    circuit(environment, lane, state) {
      for (const each of circuitStates)
        circuits.set({ environment, lane, state: each }, Number(each === state));
    },
    queueWait: (environment, lane, waitedMs) => queueWaits.observe({ environment, lane }, waitedMs / 1_000),
    queueRefusal: (environment, lane, code) => queueRefusals.inc({ environment, lane, code }),
    shapingAlone: (is) => alone.set(Number(is)),
    doubts: (count) => doubts.set(count),
    statusRead: (verdict, environment) =>
      statusReads.inc({ operation: 'getPaymentStatus', environment, verdict }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
