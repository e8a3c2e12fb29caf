/**
 * Every metric of our own: names and labels are stable, and each label takes few values, of the configuration or of a
 * table, never anything that came with a request. docs/metrics.md is made from this.
 */

export interface MetricRow {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** A sentence, as Prometheus and the documentation tell it. */
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds, of a histogram. */
  readonly buckets?: readonly number[];
}

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Stands in a label for what is not known, or does not apply. */
export const noLabelValue = 'none';

export const metricsTable = {
  penstock_requests_total: {
    kind: 'counter',
    help: 'Requests, by what became of them; operation and environment are none where they were not known yet.',
    labels: ['operation', 'environment', 'status', 'error', 'served_from'],
  },
  penstock_request_duration_seconds: {
    kind: 'histogram',
    help: 'How long requests took, from their arrival until the answer was there.',
    labels: ['operation', 'served_from'],
    buckets: seconds,
  },
  penstock_upstream_duration_seconds: {
    kind: 'histogram',
    help: 'How long attempts at the bank took, those that failed too.',
    labels: ['environment', 'lane'],
    buckets: seconds,
  },
  penstock_retries_total: {
    kind: 'counter',
    help: 'Calls that were sent once more on a new connection.',
    labels: ['environment', 'lane'],
  },
  penstock_status_reads_total: {
    kind: 'counter',
    help: 'Status reads, by how they were answered.',
    labels: ['operation', 'environment', 'verdict'],
  },
  penstock_ledger_verdicts_total: {
    kind: 'counter',
    help: 'Writes, by what the ledger knew of their X-Request-ID.',
    labels: ['operation', 'verdict'],
  },
  penstock_late_answers_total: {
    kind: 'counter',
    help: 'Answers that came after the TPP had been told that the outcome is unknown.',
    labels: ['environment', 'operation'],
  },
  penstock_shedding: {
    kind: 'gauge',
    help: 'What is refused because the gateway does not keep up: 1 for what it is.',
    labels: ['what'],
  },
  penstock_connections_refused_total: {
    kind: 'counter',
    help: 'Connections of TPP systems that were closed because there are too many.',
    labels: [],
  },
  penstock_in_doubt: {
    kind: 'gauge',
    help: 'Payments of which nobody knows whether the bank has carried them out, of all instances.',
    labels: [],
  },
  penstock_circuit_state: {
    kind: 'gauge',
    help: 'The state of each circuit, as measured: 1 for the one it is in.',
    labels: ['environment', 'lane', 'state'],
  },
  penstock_queue_wait_seconds: {
    kind: 'histogram',
    help: 'How long calls have waited for their turn.',
    labels: ['environment', 'lane'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 3, 10],
  },
  penstock_queue_refusals_total: {
    kind: 'counter',
    help: 'Calls that were not sent because their turn did not come, by error code.',
    labels: ['environment', 'lane', 'code'],
  },
  penstock_queue_length: {
    kind: 'gauge',
    help: 'Calls that wait for their turn at this moment.',
    labels: ['environment', 'lane'],
  },
  penstock_calls_running: {
    kind: 'gauge',
    help: 'Calls that are under way to the bank at this moment.',
    labels: ['environment'],
  },
  penstock_shaping_rate: {
    kind: 'gauge',
    help: 'Calls a second that all instances together may send, as learnt from the bank.',
    labels: ['environment'],
  },
  penstock_shaping_pause_seconds: {
    kind: 'gauge',
    help: 'How long the bank is left alone on its own wish; 0 is not at all.',
    labels: ['environment'],
  },
  penstock_shaping_alone: {
    kind: 'gauge',
    help: 'Whether this instance shapes its calls with a part of the rate for itself, without the shared state.',
    labels: [],
  },
  penstock_instances_live: {
    kind: 'gauge',
    help: 'Instances that share this state and were heard of in the last seconds.',
    labels: [],
  },
  penstock_instances_expected: {
    kind: 'gauge',
    help: 'As shaping.expectedInstances says.',
    labels: [],
  },
  penstock_certificate_expiry_seconds: {
    kind: 'gauge',
    help: 'When each certificate expires, in seconds since 1970; the one of the listener has no environment.',
    labels: ['environment', 'use'],
  },
  penstock_build_info: {
    kind: 'gauge',
    help: 'Always 1: the version of the gateway, and of Node.',
    labels: ['version', 'node'],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

type Table = typeof metricsTable;

/** The names of one kind. */
export type MetricName<Kind extends MetricRow['kind']> = {
  [Name in keyof Table]: Table[Name] extends { readonly kind: Kind } ? Name : never;
}[keyof Table];

/** A value for each label of a metric. */
export type LabelsOfMetric<Name extends keyof Table> = Readonly<
  Record<Table[Name]['labels'][number], string>
>;
