/**
 * Every metric of the gateway. Names and labels are stable. Each label has few values, all from the configuration or a
 * table, never from a request. docs/metrics.md is generated from this table.
 */

export interface MetricRow {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** A sentence for Prometheus and the documentation. */
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const waitSeconds = [0.1, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 40, 50, 60];

/** Value of a label that is unknown or does not apply. */
export const unknownLabel = 'none';

export const metricsTable = {
  penstock_requests_total: {
    kind: 'counter',
    help: 'Requests, by result. Operation and environment are none if the gateway refused the request before they were known.',
    labels: ['operation', 'environment', 'status', 'error', 'served_from'],
  },
  penstock_request_duration_seconds: {
    kind: 'histogram',
    help: 'Duration of requests, from their arrival until the response is complete.',
    labels: ['operation', 'served_from'],
    buckets: seconds,
  },
  penstock_status_wait_seconds: {
    kind: 'histogram',
    help: 'How long status reads waited for a change (Prefer: wait), by outcome. Not part of penstock_request_duration_seconds.',
    labels: ['environment', 'outcome'],
    buckets: waitSeconds,
  },
  penstock_status_listeners: {
    kind: 'gauge',
    help: 'Status reads that wait for a change on this instance: waits (Prefer: wait) and event streams.',
    labels: ['kind'],
  },
  penstock_status_streams_total: {
    kind: 'counter',
    help: 'Event streams of a status that have ended, by outcome: final status, refused by the bank, drained, or disconnected.',
    labels: ['environment', 'outcome'],
  },
  penstock_polls_total: {
    kind: 'counter',
    help: 'Status reads of the gateway itself, for waiting reads, event streams and webhooks, by outcome: changed, unchanged, refused by the bank, failed, or dropped because the gateway is overloaded or the shared state is unavailable.',
    labels: ['environment', 'outcome'],
  },
  penstock_polls_overdue: {
    kind: 'gauge',
    help: 'Polls of this instance that are due, and wait for a permit within notifications.share.',
    labels: ['environment'],
  },
  penstock_subscriptions: {
    kind: 'gauge',
    help: 'Subscriptions of webhooks: active (the status is read), overdue (of these, the read is due), failing (of these, the last three or more reads have failed), undelivered (with a message that is not accepted yet), and dead (that message was given up).',
    labels: ['tenant', 'state'],
  },
  penstock_bank_notifications_total: {
    kind: 'counter',
    help: 'Notifications that arrived at notifications.listen, by result: accepted, unknown (not a valid token), too_large, overloaded (to be sent again), or refused (another method, or not complete). The environment is empty if the token is not valid.',
    labels: ['environment', 'result'],
  },
  penstock_bank_notification_reads_total: {
    kind: 'counter',
    help: 'How often notifications of banks have made a payment due to be read: at most once per second and payment. Nothing is read if nobody waits for the status.',
    labels: [],
  },
  penstock_webhook_attempts_total: {
    kind: 'counter',
    help: 'Attempts to deliver a webhook, by result: delivered, gone (410: the subscription has ended), or failed.',
    labels: ['client', 'result'],
  },
  penstock_upstream_duration_seconds: {
    kind: 'histogram',
    help: 'Duration of calls to the bank, including failed ones.',
    labels: ['environment', 'lane'],
    buckets: seconds,
  },
  penstock_retries_total: {
    kind: 'counter',
    help: 'Calls to the bank that were retried on a new connection.',
    labels: ['environment', 'lane'],
  },
  penstock_status_reads_total: {
    kind: 'counter',
    help: 'Status reads, by source of the response; of the first one, if the read has waited for a change.',
    labels: ['operation', 'environment', 'verdict'],
  },
  penstock_ledger_verdicts_total: {
    kind: 'counter',
    help: 'Writes, by the state of their X-Request-ID in the ledger.',
    labels: ['operation', 'verdict'],
  },
  penstock_database_seconds: {
    kind: 'histogram',
    help: 'Duration of the statements that each write waits for, including failed ones: claim, mark (before the request is sent) and record (of the answer). Several writes share one. The wait for a connection is a part of it.',
    labels: ['statement'],
    buckets: seconds,
  },
  penstock_database_connections: {
    kind: 'gauge',
    help: 'Connections of this instance to PostgreSQL that execute a statement (in_use), and statements that wait for a connection (waiting).',
    labels: ['state'],
  },
  penstock_database_warning: {
    kind: 'gauge',
    help: '1 while PostgreSQL may lose confirmed payments for this reason, or has lost some (failover, for a day); otherwise 0.',
    labels: ['kind'],
  },
  penstock_oldest_unfinished_seconds: {
    kind: 'gauge',
    help: 'Age of the oldest write that is neither answered nor in doubt, of all instances; 0 if there is none. Read every 15 seconds; without a value if the database was unavailable.',
    labels: [],
  },
  penstock_database_bytes: {
    kind: 'gauge',
    help: 'Size of the PostgreSQL database or of the SQLite file. Read every minute; without a value if the database was unavailable.',
    labels: [],
  },
  penstock_stored_bytes_total: {
    kind: 'counter',
    help: 'Bytes that the ledger stored, by tenant; counts towards idempotency.maxStoredPerTenant.',
    labels: ['tenant'],
  },
  penstock_storage_refusals_total: {
    kind: 'counter',
    help: 'Writes refused because their tenant had reached idempotency.maxStoredPerTenant.',
    labels: ['tenant'],
  },
  penstock_request_records_not_stored_total: {
    kind: 'counter',
    help: 'Requests of which no record was stored for the search: their tenant had used its share, or their store was unavailable.',
    labels: [],
  },
  penstock_contract_checks_total: {
    kind: 'counter',
    help: 'Messages that the contract guard was to check, by result: checked, sampled_out (answers), shed because of load, failed, or not_counted.',
    labels: ['environment', 'direction', 'result'],
  },
  penstock_contract_deviations_total: {
    kind: 'counter',
    help: 'Deviations of requests and answers from the standard, by level: harmful (the bank refuses the request or executes it differently; a client may misread the answer), notable, usual.',
    labels: ['environment', 'operation', 'direction', 'level'],
  },
  penstock_contract_changes_total: {
    kind: 'counter',
    help: 'New kinds of deviations in the answers of the bank: the bank has changed. Counted by the instance that found it.',
    labels: ['environment', 'operation'],
  },
  penstock_late_answers_total: {
    kind: 'counter',
    help: 'Late responses: the bank sent them after the gateway had answered OUTCOME_UNKNOWN.',
    labels: ['environment', 'operation'],
  },
  penstock_shedding: {
    kind: 'gauge',
    help: 'Load shedding: which requests the overloaded gateway refuses; 1 for the current value of the label.',
    labels: ['what'],
  },
  penstock_connections_refused_total: {
    kind: 'counter',
    help: 'TPP connections refused because of the connection limit.',
    labels: [],
  },
  penstock_alert: {
    kind: 'gauge',
    help: 'Alerts of all instances, by kind: how many there are. The environment is none for those of no environment. Equal on all instances.',
    labels: ['id', 'severity', 'environment'],
  },
  penstock_in_doubt: {
    kind: 'gauge',
    help: 'Payments in doubt (unknown whether the bank has executed them), of all instances.',
    labels: [],
  },
  penstock_duplicate_attempts_total: {
    kind: 'counter',
    help: 'Writes that reached the bank twice with the same X-Request-ID, because the database had lost data.',
    labels: [],
  },
  penstock_withheld_responses_total: {
    kind: 'counter',
    help: 'Responses to initiations withheld because the bank returned a paymentId that belongs, or may belong, to another tenant.',
    labels: ['environment'],
  },
  penstock_active_environment: {
    kind: 'gauge',
    help: 'The active environment, which receives new payments: 1 for the active one, 0 for the others. Without values until the instance has read it from the database.',
    labels: ['environment'],
  },
  penstock_circuit_state: {
    kind: 'gauge',
    help: 'State in effect of each circuit: 1 for the current state. A circuit that operators hold is in the state of the hold. Otherwise, it is closed if it is closed for any tenant.',
    labels: ['environment', 'lane', 'state'],
  },
  penstock_circuit_held: {
    kind: 'gauge',
    help: 'Whether operators hold the circuit open or closed: 1 for the value of `as` in which they hold it.',
    labels: ['environment', 'lane', 'as'],
  },
  penstock_circuit_open_tenants: {
    kind: 'gauge',
    help: 'Tenants whose calls are refused because their circuit is open or half-open; 0 while operators hold the circuit closed.',
    labels: ['environment', 'lane'],
  },
  penstock_queue_wait_seconds: {
    kind: 'histogram',
    help: 'Time that calls waited in the queue.',
    labels: ['environment', 'lane'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 3, 10],
  },
  penstock_queue_refusals_total: {
    kind: 'counter',
    help: 'Calls refused because the queue was full or the wait too long, by error code.',
    labels: ['environment', 'lane', 'code'],
  },
  penstock_queue_length: {
    kind: 'gauge',
    help: 'Calls waiting in the queue.',
    labels: ['environment', 'lane'],
  },
  penstock_calls_running: {
    kind: 'gauge',
    help: 'Calls to the bank in progress.',
    labels: ['environment'],
  },
  penstock_tenants_at_limit: {
    kind: 'gauge',
    help: 'Tenants whose calls in progress use all concurrency slots that one tenant may use; the console names them.',
    labels: ['environment'],
  },
  penstock_shaping_rate: {
    kind: 'gauge',
    help: 'Rate limit of all instances together, in calls per second; adapts to the 429 responses of the bank.',
    labels: ['environment'],
  },
  penstock_shaping_pause_seconds: {
    kind: 'gauge',
    help: 'Longest remaining pause that the bank has requested (Retry-After), for all calls or some of them; 0 = no pause.',
    labels: ['environment'],
  },
  penstock_shaping_alone: {
    kind: 'gauge',
    help: '1 while this instance uses only its own share of shaping.rate because Redis is unavailable or not configured.',
    labels: [],
  },
  penstock_instances_live: {
    kind: 'gauge',
    help: 'Live instances: those that have reported to the database within the last seconds.',
    labels: [],
  },
  penstock_instances_expected: {
    kind: 'gauge',
    help: 'The setting shaping.expectedInstances.',
    labels: [],
  },
  penstock_config_reloads_total: {
    kind: 'counter',
    help: 'Reloads of the configuration by outcome: applied, or refused because the new configuration cannot be used.',
    labels: ['outcome'],
  },
  penstock_certificate_expiry_seconds: {
    kind: 'gauge',
    help: 'Expiry time of each certificate, in seconds since 1970. The certificate of the listener has no environment.',
    labels: ['environment', 'use'],
  },
  penstock_build_info: {
    kind: 'gauge',
    help: 'Always 1. The labels are the versions of the gateway and of Node.',
    labels: ['version', 'node'],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

type Table = typeof metricsTable;

/** The names of all metrics of one kind. */
export type MetricName<Kind extends MetricRow['kind']> = {
  [Name in keyof Table]: Table[Name] extends { readonly kind: Kind } ? Name : never;
}[keyof Table];

/** A value for each label of a metric. */
export type LabelsOfMetric<Name extends keyof Table> = Readonly<
  Record<Table[Name]['labels'][number], string>
>;
