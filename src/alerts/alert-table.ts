/**
 * Every alert of the gateway: when it is raised, and what to do. The API, the console, `penstock status`, the metric, the rules for
 * Prometheus and docs/operations/alerts.md read this table. READ FIRST of this folder.
 */

/** `critical`: customers cannot pay, or money is uncertain. `warning`: somebody must act. `info`: good to know. */
export const severities = ['critical', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

export interface AlertRow {
  /** When it is raised: a sentence. */
  readonly condition: string;
  /** The severities that it may have. */
  readonly severities: readonly Severity[];
  /** What to do, for an operator who is called at night. */
  readonly action: string;
  /** The page of docs/operations that says more. */
  readonly guide: string;
  /** What each instance finds out for itself; the others are the same for all instances. */
  readonly isOfInstance?: true;
  /** While it is critical, customers cannot pay; `always`: as a warning, some payments fail. */
  readonly stopsPayments?: 'critical' | 'always';
  /** How long the condition must last before the alert is raised: milliseconds. */
  readonly afterMs?: number;
  /** The condition cannot flap: the alert ends with it, and not only 20 s later. */
  readonly endsAtOnce?: true;
  /** A milder severity is shown at once, and not only 20 s later. */
  readonly isMilderAtOnce?: true;
}

const critical = ['critical'] as const;
const warning = ['warning'] as const;
const either = ['critical', 'warning'] as const;

export const alertTable = {
  'payments-stopped': {
    condition:
      'An instance cannot take payments, although its database works: no active environment, or unusable identities.',
    severities: critical,
    action: 'Do what the text says. New payments are refused until then; nothing is sent.',
    guide: 'switch-environment.md',
    isOfInstance: true,
    stopsPayments: 'critical',
  },
  'database-unavailable': {
    condition: 'An instance cannot write to the database.',
    severities: critical,
    action:
      'Restore the database. Writes are refused until then, nothing is sent, and the gateway recovers by itself. Statuses are read from the bank.',
    guide: 'degradation.md',
    isOfInstance: true,
    stopsPayments: 'critical',
  },
  'initiations-unauthorised': {
    condition:
      'Most initiations fail (see `initiations-fail`), and 80 % of these because the bank answers 401 or 403. With a code about a token, a consent, a PSU or a product, single TPPs may be at fault: then it must be half of the last minute, or 80 % of the last five or 15 minutes (at least 10), or, of several tenants, all of the last five minutes (at least 5) or of the last 15 minutes (at least 3). A warning in other environments than the active one, if it is one product, a third of the last minute (at least 10), if the payments of as many other tenants or products succeed, or if only one of several tenants has tried to pay, with such a code.',
    severities: either,
    action:
      'The bank does not accept the gateway, its certificate or the TPP. `penstock search --operation initiatePayment --error any` and `penstock explain` show its answers; ask the bank, and check the certificates.',
    guide: 'why-was-my-call-refused.md',
    stopsPayments: 'always',
  },
  'initiations-fail': {
    condition:
      'Most initiations fail: they have no usable answer of the bank, 429 or 5xx, the bank answers 401 or 403, or the gateway refuses them. Most: 80 % of the last 10, 60 or 120 seconds (at least 5), half of the last minute or of the last five minutes (at least 10), or all of the last 5 or 15 minutes (at least 3). What the bank refuses for its content does not count. Its name is that of the reason of 80 % of the failures, otherwise this one; it may change, and the alert stays the same. A warning in other environments than the active one, if it is one product, 10 % of the last minute or 8 % of the last five minutes (at least 5), or if the payments of as many other tenants or products succeed: in the last minute, or, if only one tenant is concerned or the failure lasts longer, in the last five minutes.',
    severities: either,
    action:
      'Ask the bank. Payments of which it is unknown whether the bank executed them are in doubt. If another environment of this bank works, consider `penstock environment use`.',
    guide: 'circuits.md',
    stopsPayments: 'always',
  },
  'initiations-blocked': {
    condition:
      'Most initiations fail (see `initiations-fail`), and 80 % of these because the gateway refuses them: a circuit is open, a queue is full, or it is overloaded. A warning in other environments than the active one, if it is one product, 10 % of the last minute or 8 % of the last five minutes (at least 5), if the payments of as many other tenants or products succeed, or for reasons that concern only single tenants: they send more than their share, or only their circuit is open. If nearly everything of several tenants is refused for such reasons, it counts as refused for all.',
    severities: either,
    action: 'Nothing was sent, and TPPs may repeat. The other alerts show the cause.',
    guide: 'why-was-my-call-refused.md',
    stopsPayments: 'always',
  },
  'initiations-refused': {
    condition:
      'The bank refuses more initiations than usual, of an environment or of one product, with other codes than 401 and 403: at least 10 of the last 30 seconds, and five times the share of the median hour of the last day (at least 30 %; 50 % if fewer than three hours had 20 initiations); or 90 % of the last five or 15 minutes (at least 10), or, of several tenants, all of the last five minutes (at least 5) or of the last 15 minutes (at least 3).',
    severities: warning,
    action:
      '`penstock search --operation initiatePayment --error any` shows the answers of the bank. If all are of one client, tell it; if not, ask the bank what has changed.',
    guide: 'why-was-my-call-refused.md',
    stopsPayments: 'always',
  },
  'bank-slow': {
    condition:
      'The bank takes at least 2 seconds for an initiation, and three times as long as in the median hour of the last day (5 seconds if fewer than three hours had 20 initiations): the mean of the last 10 seconds, of at least 5.',
    severities: warning,
    action:
      'Ask the bank. Payments go on; those that reach the deadline are in doubt. Other calls wait longer, because payments come first.',
    guide: 'circuits.md',
  },
  'bank-silent': {
    condition:
      'At least 3 payments or authorisations of an instance have waited for an answer of the bank for 8 seconds, and the bank has answered none in that time.',
    severities: warning,
    action:
      'Ask the bank. Those that reach the deadline are in doubt, and initiations then count as failed. If another environment of this bank works, consider `penstock environment use`.',
    guide: 'circuits.md',
    isOfInstance: true,
    stopsPayments: 'always',
  },
  'requests-fail': {
    condition:
      'Of all requests of the last minute, 10 % and at least 5 have no usable answer of the bank, or 5xx.',
    severities: warning,
    action: '`penstock search --outcome failed` shows them. Ask the bank.',
    guide: 'circuits.md',
  },
  'in-doubt': {
    condition:
      'It is unknown whether the bank has executed a payment, a cancellation or a final authorisation. Critical in production, otherwise information.',
    severities: ['critical', 'info'],
    action:
      'Ask the bank for the outcome, then resolve each of them: `penstock in-doubt`. Until then, repeats are refused and nothing is paid twice.',
    guide: 'in-doubt.md',
    endsAtOnce: true,
  },
  'authorisation-in-doubt': {
    condition:
      'It is unknown whether the bank has executed a step of an authorisation that moves no money yet.',
    severities: ['warning', 'info'],
    action: 'The payer starts the authorisation again. `penstock in-doubt` lists the steps.',
    guide: 'in-doubt.md',
    endsAtOnce: true,
  },
  'write-unfinished': {
    condition: 'A write has been neither answered nor put in doubt for five minutes.',
    severities: warning,
    action:
      'Its instance cannot store the outcome, or it has ended and no other one has taken the write over: the logs of the instances say why.',
    guide: 'dashboards.md#the-database',
  },
  'rate-lowered': {
    condition:
      'The bank has answered 429, and the gateway calls it at less than 90 % of the configured rate.',
    severities: warning,
    action:
      'Payments go first, status reads wait. The rate recovers by itself. If it happens again, agree on the rate with the bank, and set `shaping.rate`.',
    guide: 'shaping.md',
    isOfInstance: true,
  },
  'bank-pauses': {
    condition: 'The bank has asked for a pause (Retry-After) that concerns more than single payments.',
    severities: warning,
    action: 'Nothing. The calls that it concerns wait, and are sent afterwards.',
    guide: 'shaping.md',
    isOfInstance: true,
  },
  'calls-queue': {
    condition: 'More calls wait than the bank takes in a second, for 5 seconds.',
    severities: warning,
    action: 'The demand exceeds the rate that the bank allows. Payments overtake status reads.',
    guide: 'shaping.md',
    isOfInstance: true,
    afterMs: 5_000,
  },
  'tenant-at-limit': {
    condition: 'A tenant uses all its concurrency slots, for 5 seconds.',
    severities: ['info'],
    action: 'Its further calls wait; other tenants are not affected.',
    guide: 'shaping.md',
    isOfInstance: true,
    afterMs: 5_000,
  },
  'circuit-open': {
    condition:
      'A circuit is open, or probing the bank. Critical if it is that of payments in the active environment.',
    severities: either,
    action:
      'The bank fails. Calls are refused at once, and the gateway probes the bank and closes the circuit when it works again.',
    guide: 'circuits.md',
    isOfInstance: true,
    stopsPayments: 'critical',
    isMilderAtOnce: true,
  },
  'circuit-held': {
    condition:
      'Operators hold a circuit. Critical if they hold that of payments in the active environment open.',
    severities: either,
    action:
      'Release it when the reason no longer applies: `penstock circuits release`. The audit log names the operator.',
    guide: 'circuits.md#hold-a-circuit-open-or-closed',
    isOfInstance: true,
    stopsPayments: 'critical',
    endsAtOnce: true,
  },
  'circuit-open-for-tenant': {
    condition: 'A circuit is open for some tenants only.',
    severities: warning,
    action:
      'The bank fails the calls of these tenants, and works for the others. `penstock circuits` shows the first failed call.',
    guide: 'circuits.md',
    isOfInstance: true,
  },
  'webhook-endpoint-fails': {
    condition: 'An endpoint has not accepted a message for 10 minutes. One alert for each endpoint.',
    severities: warning,
    action: 'Tell its TPP. Messages are kept and repeated; when the endpoint works, they are delivered.',
    guide: 'webhooks.md#see-and-resend',
  },
  'webhooks-given-up': {
    condition: 'Messages were not delivered within `notifications.retryFor`.',
    severities: warning,
    action:
      '`penstock notifications --state dead` shows them. Send them again when the endpoint works: `penstock notifications all resend`.',
    guide: 'webhooks.md#see-and-resend',
    endsAtOnce: true,
  },
  'subscriptions-failing': {
    condition: 'The last three or more reads of the status of subscribed payments have failed.',
    severities: warning,
    action:
      '`penstock notifications --state failing` shows them. The bank may need header fields that `callerHeaders` or `pollHeaders` must name.',
    guide: 'webhooks.md#see-and-resend',
  },
  'polls-overdue': {
    condition: 'Reads of the gateway itself are late for 10 minutes, so TPPs learn of changed statuses late.',
    severities: warning,
    action:
      'More payments need reads than `notifications.share` of the rate allows. Raise it, or the rate, if the bank agrees.',
    guide: 'status-cache.md#waiting-reads-and-streams',
    isOfInstance: true,
    afterMs: 600_000,
  },
  'database-slow': {
    condition:
      'The statements of writes take 200 ms in the database: the mean of the last 10 seconds, of at least 5.',
    severities: warning,
    action:
      'A payment waits for three such statements. Look at the load and the disk of the database, at long transactions of others, and at its connections.',
    guide: 'dashboards.md#the-database',
    isOfInstance: true,
  },
  'database-lost-writes': {
    condition: 'The database has failed over, and an instance did not write back what it remembers.',
    severities: critical,
    action:
      'Ask the bank which payments it received in the last moments before the failover: a repeat of a lost one is paid again.',
    guide: 'failover.md#a-failover-with-an-asynchronous-standby',
    isOfInstance: true,
    endsAtOnce: true,
  },
  'database-failed-over': {
    condition: 'The database has failed over within the last 15 minutes.',
    severities: ['info'],
    action: 'The instances have written back what they remember. Add a new standby.',
    guide: 'failover.md',
    isOfInstance: true,
    endsAtOnce: true,
  },
  'database-standby-missing': {
    condition: 'Commits wait for a standby, and none is connected: writes are refused.',
    severities: critical,
    action:
      'Start the standby, or remove it from `synchronous_standby_names` and accept that a failover can lose payments.',
    guide: 'failover.md',
    isOfInstance: true,
    stopsPayments: 'critical',
  },
  'database-may-lose-payments': {
    condition:
      'Confirmed payments can be lost by a crash or a failover: `fsync` or `synchronous_commit` is off, or commits do not wait for a standby. Information if there has been no standby since the start.',
    severities: ['warning', 'info'],
    action:
      'A repeat of a lost payment is paid again. Correct the setting, and run `penstock migrate` as the role of the gateway.',
    guide: 'failover.md',
    isOfInstance: true,
  },
  'database-in-memory': {
    condition: 'The database is in memory: a restart loses it.',
    severities: ['info'],
    action: 'Set `state.file` or `state.postgres` before real payments are sent.',
    guide: 'state.md',
    isOfInstance: true,
    endsAtOnce: true,
  },
  'redis-unavailable': {
    condition: 'Redis is configured, and cannot be used.',
    severities: warning,
    action:
      'No payment depends on it. Each instance uses its own share of the rate and caches for itself, so the bank gets more status reads. Restore Redis.',
    guide: 'redis.md',
    isOfInstance: true,
  },
  'instance-lost': {
    condition: 'An instance stopped reporting within the last hour, and was not started again on its host.',
    severities: warning,
    action:
      'The others have taken over. Find out why it has ended, and start it again. What it had sent without an answer is in doubt.',
    guide: 'fleet.md',
  },
  'instance-restarts': {
    condition: 'An instance has crashed within the last hour, and was started again.',
    severities: warning,
    action: 'Its log and the reports of the system say why. Records of its last second may be missing.',
    guide: 'fleet.md',
    endsAtOnce: true,
  },
  'instance-not-ready': {
    condition: 'An instance reports, and does not take requests, for 5 seconds, unless it is stopping.',
    severities: warning,
    action: 'Do what the text says. The load balancer sends its requests to the others.',
    guide: 'fleet.md',
    afterMs: 5_000,
  },
  'instances-unseen': {
    condition: 'An instance cannot exchange reports with the others, for 5 seconds.',
    severities: warning,
    action:
      'The figures and the alerts are those of this instance. They are complete again when the database accepts its reports.',
    guide: 'fleet.md',
    isOfInstance: true,
    afterMs: 5_000,
    endsAtOnce: true,
  },
  'configurations-differ': {
    condition:
      'The instances run with different configurations, for 5 seconds. Information while their versions differ: during an upgrade.',
    severities: ['warning', 'info'],
    action: 'Load the file again on all of them (`penstock reload --all`), or restart those that need it.',
    guide: 'fleet.md',
    afterMs: 5_000,
  },
  'versions-differ': {
    condition: 'The instances run different versions.',
    severities: ['info'],
    action: 'Normal during an upgrade; otherwise, upgrade those that are behind.',
    guide: 'fleet.md',
    endsAtOnce: true,
  },
  'clocks-differ': {
    condition: 'The clocks of the instances differ by more than 2 seconds.',
    severities: warning,
    action:
      'Synchronise them, for example with NTP: Date fields, records and the ends of holds depend on them.',
    guide: 'fleet.md',
  },
  'more-instances-than-expected': {
    condition: 'More instances run than `shaping.expectedInstances`, for a minute.',
    severities: warning,
    action:
      'If Redis fails, an instance that starts while the database is unavailable takes more than its share of the rate of the bank. Raise `shaping.expectedInstances`.',
    guide: 'scaling.md',
    afterMs: 60_000,
  },
  overloaded: {
    condition:
      'An instance refuses requests because it is overloaded, its event loop is late by 250 ms, or it has refused connections within the last minute; for 5 seconds. Critical while it refuses all requests.',
    severities: either,
    action: 'Start more instances, give them more CPU, or find the clients with the highest request rates.',
    guide: 'overload.md',
    isOfInstance: true,
    stopsPayments: 'critical',
    afterMs: 5_000,
  },
  'storage-limit': {
    condition:
      'A tenant has reached `idempotency.maxStoredPerTenant`, and its writes are refused. Critical if there is no other tenant.',
    severities: either,
    action:
      'Other tenants are not affected. Raise the limit if the database has enough room, or ask the TPP why it sends so much.',
    guide: 'state.md#limit-of-a-tenant',
    isOfInstance: true,
    stopsPayments: 'always',
  },
  'internal-errors': {
    condition:
      'Requests have failed with INTERNAL within the last 15 minutes. Critical in production and in the active environment.',
    severities: either,
    action: 'This is a bug of the gateway. The log has lines of level error with the stack trace; report it.',
    guide: 'why-was-my-call-refused.md',
    endsAtOnce: true,
  },
  'reload-refused': {
    condition: 'The last configuration that an instance was to load cannot be used.',
    severities: warning,
    action: 'The previous one stays in effect. `penstock check` prints the errors.',
    guide: 'run.md',
    isOfInstance: true,
    endsAtOnce: true,
  },
  'certificate-expires': {
    condition:
      'A certificate expires within 30 days. Critical from 7 days on, of a listener, of production or of the active environment.',
    severities: either,
    action:
      'Renew it and replace its files; they are read without a restart. Renewing a qualified certificate takes weeks.',
    guide: 'certificates.md#certificate-expiry',
    isOfInstance: true,
    endsAtOnce: true,
  },
  'bank-has-changed': {
    condition: 'Answers of the bank deviate from the standard in a new way, for a day.',
    severities: warning,
    action:
      '`penstock contract report` shows the deviation and an X-Request-ID. Ask the bank whether the change is intended.',
    guide: 'contract.md#the-bank-has-changed',
    endsAtOnce: true,
  },
} as const satisfies Readonly<Record<string, AlertRow>>;

export type AlertId = keyof typeof alertTable;

export const alertRow = (id: AlertId): AlertRow => alertTable[id];
export const isAlertId = (id: string): id is AlertId => Object.hasOwn(alertTable, id);

/** The address of a page of docs/operations. */
export const guideUrl = (guide: string): string =>
  `https://github.com/penstock-gateway/penstock/blob/main/docs/operations/${guide}`;
