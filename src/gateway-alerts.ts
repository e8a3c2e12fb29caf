/** The alerts of the running gateway: gathers what they are found in, evaluates them every second, and merges those of all instances. */

import { type CanPay, canPay } from './alerts/can-pay.ts';
import { type AlertFacts, findAlerts } from './alerts/find-alerts.ts';
import type { Alert } from './alerts/finding.ts';
import type { UsualInitiations } from './alerts/initiation-findings.ts';
import { bySeverity, mergeAlerts } from './alerts/merge-alerts.ts';
import type { BankChange, InternalErrors } from './alerts/payment-findings.ts';
import { createRaisedAlerts, type RaisedAlert } from './alerts/raised-alerts.ts';
import { usualInitiationsOf } from './alerts/usual-initiations.ts';
import { isProduction } from './config/production.ts';
import type { ReadinessCheck } from './readiness.ts';
import type { RequestHandlers } from './request-handler.ts';
import type { Services } from './services.ts';
import { isDatabaseInMemory } from './state/create-state.ts';
import { createAlertFactsTable, type StoredFailingEndpoint } from './store/alert-facts.ts';
import type { Row } from './store/database.ts';
import { createRequestRecordTable } from './store/request-records.ts';
import type { InstanceFigures, ReportedAlert } from './telemetry/fleet-reports.ts';
import { unknownLabel } from './telemetry/metrics-table.ts';

export interface GatewayAlerts {
  /** Reads what only the database knows; to be called every 5 seconds. Never rejects: in an outage, the last facts remain. */
  refresh(): Promise<void>;
  /** To be called every second. @returns the alerts of this instance, for its report */
  evaluate(figures: ProcessFacts): readonly ReportedAlert[];
  /** Those of all instances, the most severe first. */
  current(): readonly Alert[];
  canPay(): CanPay;
}

type ProcessFacts = Pick<InstanceFigures, 'eventLoopDelayMs' | 'overduePolls'>;

interface AlertSources {
  readonly services: Pick<
    Services,
    | 'currentConfig'
    | 'database'
    | 'databaseHeartbeat'
    | 'databaseMetrics'
    | 'stateHeartbeat'
    | 'state'
    | 'activeEnvironment'
    | 'names'
    | 'ledger'
    | 'webhooks'
    | 'fleet'
    | 'instanceId'
    | 'loadShedding'
    | 'telemetry'
  >;
  readonly requestHandlers: RequestHandlers;
  readonly readiness: Pick<ReadinessCheck, 'paymentsStopped' | 'certificates'>;
  /** Why the last configuration could not be used. */
  readonly reloadErrors: () => readonly string[];
  /** For how long no connection has been refused because of the limit. */
  readonly connectionsAcceptedForMs: () => number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

const secondsPerDay = 86_400;
const hourMs = 3_600_000;
/** What is usual changes slowly. */
const refreshesPerUsual = 12;

export function createGatewayAlerts({
  services,
  requestHandlers,
  readiness,
  reloadErrors,
  connectionsAcceptedForMs,
  now = monotonicNow,
}: AlertSources): GatewayAlerts {
  const { currentConfig, fleet, ledger, names, telemetry, instanceId } = services;
  const table = createAlertFactsTable(services.database);
  const records = createRequestRecordTable(services.database);
  const raised = createRaisedAlerts();
  let refreshes = 0;
  let usual: readonly UsualInitiations[] = [];
  let endpoints: readonly StoredFailingEndpoint[] = [];
  let bankChanges: readonly BankChange[] = [];
  let internalErrors: readonly InternalErrors[] = [];
  let own: readonly ReportedAlert[] = [];

  const active = () => services.activeEnvironment.known()?.environment;

  telemetry.metrics.addGaugeSource('penstock_alert', () => {
    const groups = Map.groupBy(current(), ({ id, severity, environment = unknownLabel }) =>
      JSON.stringify({ id, severity, environment }),
    );
    return Array.from(groups, ([labels, alerts]) => ({ labels: JSON.parse(labels), value: alerts.length }));
  });

  const current = () => mergeAlerts({ name: instanceId, alerts: own }, fleet.alertsOfOthers());

  function gatherFacts(figures: ProcessFacts): AlertFacts {
    const { databaseHeartbeat, databaseMetrics, stateHeartbeat, state, webhooks, loadShedding } = services;
    const { clients, environments, shaping, state: stateSettings } = currentConfig.value;
    const { upstreams } = requestHandlers.current;
    const rates = new Map(environments.all.map(({ name, shaping: { rate } }) => [name, rate]));
    const minute = fleet.seconds().slice(-60);
    const subscriptions = webhooks.counts();
    return {
      nowMs: now(),
      active: active(),
      isProduction,
      initiationsOf: fleet.initiations,
      quietSeconds: fleet.quietSeconds,
      isConfigured: (environment) => rates.has(environment),
      usual,
      requests: minute.reduce((sum, { requests }) => sum + requests, 0),
      failed: minute.reduce((sum, { failed }) => sum + failed, 0),
      doubts: ledger.inDoubt.counts().map((count) => names.withNames(count)),
      oldestUnfinishedMs: databaseMetrics.oldestUnfinishedMs(),
      endpoints: endpoints.map((endpoint) => names.withNames(endpoint)),
      deadMessages: subscriptions.reduce((sum, { dead }) => sum + dead, 0),
      failingSubscriptions: subscriptions.reduce((sum, { failing }) => sum + failing, 0),
      bankChanges,
      internalErrors,
      circuits: upstreams.circuits(),
      limiters: upstreams.limiters(),
      rateOf: (environment) => rates.get(environment),
      certificates: readiness.certificates(),
      database: {
        problem: databaseHeartbeat.problem(),
        warnings: databaseHeartbeat.warnings() ?? [],
        slowMs: databaseMetrics.slowMs(),
        failedOverAtMs: databaseHeartbeat.failedOverAtMs(),
        isInMemory: isDatabaseInMemory(stateSettings),
      },
      paymentsStopped: readiness.paymentsStopped(),
      redisProblems: [stateHeartbeat.problem() ?? [], state.warnings()].flat(),
      reloadErrors: reloadErrors(),
      shedding: loadShedding.shedding(),
      ...figures,
      connectionsAcceptedForMs: connectionsAcceptedForMs(),
      tenantsWithoutStorage: ledger.storageBudget
        .refusedTenants()
        .map((tenant) => names.withNames({ tenant }).tenant),
      tenants: Math.max(1, new Set(clients.map(({ tenant }) => tenant)).size),
      ownId: instanceId,
      instances: fleet.instances(),
      scope: fleet.scope(),
      expectedInstances: shaping.expectedInstances,
    };
  }

  return {
    async refresh() {
      const isUsualDue = refreshes++ % refreshesPerUsual === 0;
      const [found, changed, failed, initiations] = await Promise.allSettled([
        table.failingEndpoints(),
        table.bankChanges(),
        table.internalErrors(),
        isUsualDue ? records.initiations(Math.floor(now() / 1_000) - secondsPerDay) : undefined,
      ]);
      if (found.status === 'fulfilled') endpoints = found.value;
      if (changed.status === 'fulfilled') bankChanges = changed.value.map(bankChangeOf);
      internalErrors = failed.status === 'fulfilled' ? failed.value.map(internalErrorsOf) : [];
      if (initiations.status === 'fulfilled' && initiations.value)
        usual = usualInitiationsOf(initiations.value.map(hourlyInitiationsOf), Math.floor(now() / hourMs));
    },

    evaluate({ eventLoopDelayMs, overduePolls }) {
      const facts = gatherFacts({ eventLoopDelayMs, overduePolls });
      own = raised
        .update(findAlerts(facts), facts.nowMs)
        .toSorted(bySeverity)
        .slice(0, maxReported)
        .map(reportOf);
      return own;
    },

    current,
    canPay: () => canPay(current(), active() ?? null),
  };
}

/** Is not set back. Milliseconds since 1970. */
const monotonicNow = () => Math.round(performance.timeOrigin + performance.now());

/** The others refuse a report that has more. */
const maxReported = 200;
const maxTextLength = 1_900;

/** A text may quote what is wrong in a configuration, and is shown in terminals. */
const printable = (text: string) => text.replaceAll(/\p{Cc}+/gu, ' ');

const reportOf = ({
  id,
  key,
  severity,
  environment,
  text,
  sinceMs,
  overAtMs,
}: RaisedAlert): ReportedAlert => ({
  ...{ id, key, severity, text: printable(text).slice(0, maxTextLength), sinceMs },
  ...(overAtMs !== undefined && { overAtMs }),
  ...(environment !== undefined && { environment }),
});

const hourlyInitiationsOf = ({ environment, hour, result, requests, bank_ms: bankMs }: Row) => ({
  ...{ environment: String(environment), hour: Number(hour), result: String(result) },
  ...{ count: Number(requests), bankMs: Number(bankMs) },
});

const bankChangeOf = (row: Row): BankChange => ({
  environment: String(row.environment),
  operation: String(row.operation),
  path: String(row.path),
  rule: String(row.rule),
  changedAtMs: Number(row.found_at),
});

const internalErrorsOf = ({ environment, requests, last }: Row): InternalErrors => ({
  environment: String(environment),
  count: Number(requests),
  lastRequestId: String(last).slice(String(last).indexOf(' ') + 1),
});
