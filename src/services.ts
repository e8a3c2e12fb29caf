/** The objects that outlive a reload of the configuration. Created once, before the first request handler. */

import { createSessions, type Sessions } from './admin/sessions.ts';
import type { Config } from './config/schema.ts';
import { type ContractGuard, createContractGuard } from './contract-guard/create-contract-guard.ts';
import {
  createDatabaseHeartbeat,
  type DatabaseHeartbeat,
  databaseWarningKinds,
} from './database-heartbeat.ts';
import { createDatabaseMetrics, type DatabaseMetrics } from './database-metrics.ts';
import { type ActiveEnvironment, createActiveEnvironment } from './environments/active-environment.ts';
import { type AffinityStore, createAffinityStore } from './environments/affinity.ts';
import { type AuditLog, createAuditLog } from './environments/audit-log.ts';
import { recordInTimeline } from './environments/audit-timeline.ts';
import { createInitiationOf } from './environments/initiation-of.ts';
import { createLoadShedder, type LoadShedder, reportShedding } from './http/load-shedding.ts';
import { createTakeQuota, type TakeQuota } from './http/quota.ts';
import { createReadInitiation, type ReadInitiation } from './idempotency/initiation-outcome.ts';
import { createLedgerServices, type LedgerServices } from './idempotency/ledger-services.ts';
import { createResolve, type Resolve } from './idempotency/resolve.ts';
import { createStorageBudget } from './idempotency/storage-budget.ts';
import { createKnownNames, type KnownNames, logWithNames } from './identities/known-names.ts';
import { receivingEnvironments } from './notifications/bank-notification-modes.ts';
import {
  type BankNotifications,
  createBankNotifications,
} from './notifications/create-bank-notifications.ts';
import { createNotifications, type NotificationServices } from './notifications/create-notifications.ts';
import { createWebhooks, type Webhooks } from './notifications/create-webhooks.ts';
import { createSeenStatuses, type SeenStatuses } from './payments/seen-statuses.ts';
import { createPeriodicTask, heartbeatMs, type PeriodicTask } from './periodic-task.ts';
import { createRequestRecords, type RequestRecords } from './request-records/create-request-records.ts';
import { createLookUpLimits, type LookUpLimits } from './self-service/look-up-limits.ts';
import { type EncryptedState, withEncryption } from './state/create-state.ts';
import { createMemoryState } from './state/memory.ts';
import type { State } from './state/ports.ts';
import { createStateHeartbeat, type StateHeartbeat } from './state-heartbeat.ts';
import { paymentKeyOf } from './status-cache/cache-key.ts';
import { createStatusCacheServices, type StatusCacheServices } from './status-cache/cache-status.ts';
import type { CachePlaces } from './status-cache/cache-store.ts';
import { createActiveEnvironmentTable } from './store/active-environment.ts';
import { createAuditTable } from './store/audit.ts';
import { createBankNotificationTable } from './store/bank-notifications.ts';
import { createContractReportTable } from './store/contract-report.ts';
import type { Database } from './store/database.ts';
import {
  type GatewayDatabases,
  prepareDatabase,
  refuseUnusableSchema,
  usableWhen,
} from './store/gateway-database.ts';
import { createHoldTable } from './store/holds.ts';
import { createIdentityTable, type IdentityTable } from './store/identities.ts';
import { createInstanceTable, type InstanceTable } from './store/instances.ts';
import { createPaymentHistoryTable, type PaymentHistoryTable } from './store/payment-history.ts';
import { createPaymentTable } from './store/payments.ts';
import { postgresWarnings } from './store/postgres-settings.ts';
import { createRequestRecordTable } from './store/request-records.ts';
import { createSubscriptionTable } from './store/subscriptions.ts';
import { createWebhookMessageTable, type WebhookMessageTable } from './store/webhook-messages.ts';
import { createTelemetry, type Telemetry } from './telemetry/create-telemetry.ts';
import { createFleet, type Fleet, type FleetEvents } from './telemetry/fleet.ts';
import { createReportTable } from './telemetry/fleet-reports.ts';
import { newInstanceName } from './telemetry/instance-name.ts';
import type { Log } from './telemetry/log.ts';
import { createTimeline, type Timeline } from './telemetry/timeline.ts';
import { createHolds, type Holds } from './upstream/circuit/holds.ts';
import { createAdaptiveRates } from './upstream/shaping/adaptive-rate.ts';
import { createPermitSources } from './upstream/shaping/permits.ts';
import type { SharedUpstreamState } from './upstream/upstreams.ts';

/** Where the gateway keeps what outlives a request. */
export interface Stores extends GatewayDatabases {
  /** What the database does not contain: subscriptions, cached statuses, rates and messages. */
  readonly state: State;
}

export interface Services {
  /** Written at a reload, by the request handlers. */
  readonly currentConfig: CurrentConfig;
  readonly telemetry: Telemetry;
  readonly database: Database;
  readonly databaseHeartbeat: DatabaseHeartbeat;
  readonly databaseMetrics: DatabaseMetrics;
  readonly instances: InstanceTable;
  readonly state: State;
  /** The name of this instance among those that share the state; new after every start. */
  readonly instanceId: string;
  readonly fleet: Fleet;
  readonly timeline: Timeline;
  readonly sessions: Sessions;
  readonly stateHeartbeat: StateHeartbeat;
  readonly identities: IdentityTable;
  readonly names: KnownNames;
  readonly activeEnvironment: ActiveEnvironment;
  readonly affinity: AffinityStore;
  readonly paymentHistory: PaymentHistoryTable;
  readonly seenStatuses: SeenStatuses;
  readonly audit: AuditLog;
  readonly ledger: LedgerServices;
  readonly resolve: Resolve;
  readonly statusCache: StatusCacheServices;
  readonly notifications: NotificationServices;
  readonly webhooks: Webhooks;
  readonly webhookMessages: WebhookMessageTable;
  readonly bankNotifications: BankNotifications;
  readonly holds: Holds;
  readonly upstream: SharedUpstreamState;
  readonly takeQuota: TakeQuota;
  readonly requestRecords: RequestRecords;
  readonly readInitiation: ReadInitiation;
  readonly lookUpLimits: LookUpLimits;
  readonly contractGuard: ContractGuard;
  readonly loadShedding: LoadShedder;
  /** Flushes pending writes and refreshes shared data. Not in the heartbeat: it may be slow after an outage. */
  readonly maintenance: PeriodicTask;
  /** Stores outcomes that are pending, recovers what ended instances have left, and reads the metrics of the database. */
  readonly ledgerTask: PeriodicTask;
  /** Deletes what has expired in the database. */
  readonly deletionTask: PeriodicTask;
  /** Reads the data of the other instances. Never rejects: the heartbeat tries again. */
  readonly loadSharedState: () => Promise<void>;
}

/** The configuration in effect. Services that depend on a reloadable setting read it here at each use. */
export interface CurrentConfig {
  value: Config;
}

const deletionIntervalMs = 60_000;

export function createServices(
  config: Config,
  log: Log,
  { database: opened, heartbeatDatabase, state }: Stores,
  instanceId: string = newInstanceName(),
): Services {
  const currentConfig: CurrentConfig = { value: config };
  const expectedInstances = () => currentConfig.value.shaping.expectedInstances;
  const telemetry = createTelemetry(log, config.tracing);
  const { metrics } = telemetry;
  const databaseMetrics = createDatabaseMetrics(
    usableWhen(() => databaseHeartbeat.isPrepared(), opened),
    metrics,
  );
  const database = databaseMetrics.measured;

  const timeline = createTimeline(database, instanceId, log);
  /** On a connection beside that of the heartbeat: a report must not wait behind payments. */
  const reports = createReportTable(usableWhen(() => databaseHeartbeat.isPrepared(), heartbeatDatabase));
  const fleet = createFleet(reports, instanceId, fleetEvents(timeline));

  const activeEnvironment = createActiveEnvironment(
    createActiveEnvironmentTable(heartbeatDatabase),
    state.pubsub,
    config.environments.active,
    log,
  );
  metrics.addGaugeSource('penstock_active_environment', () => {
    const active = activeEnvironment.known()?.environment;
    if (active === undefined) return [];
    const names = new Set([...currentConfig.value.environments.all.map(({ name }) => name), active]);
    return Array.from(names, (environment) => ({
      labels: { environment },
      value: Number(environment === active),
    }));
  });
  const affinity = createAffinityStore(createPaymentTable(database), config.payments.rememberFor);
  const paymentHistory = createPaymentHistoryTable(database);
  const encryptedState = { ...state, ...withEncryption(state, config.state) };
  const sessions = createSessions(database, encryptedState.keys);
  const identities = createIdentityTable(database);
  const names = createKnownNames(identities);
  const { withNames } = names;
  const instances = createInstanceTable(heartbeatDatabase, instanceId);
  const ledger = createLedgerServices({
    database,
    instances,
    instanceId,
    keys: encryptedState.keys,
    storageBudget: createStorageBudget(state.tokenBuckets, () => currentConfig.value.idempotency, telemetry),
    windowMs: () => currentConfig.value.idempotency.window,
    countDuplicate: () => metrics.increment('penstock_duplicate_attempts_total', {}),
    log: logWithNames(log, names),
  });
  metrics.addGaugeSource('penstock_in_doubt', () => {
    const count = ledger.inDoubt.count();
    return count === undefined ? [] : [{ labels: {}, value: count }];
  });
  const isAlone = database.dialect === 'sqlite';
  if (!isAlone && !state.tokenBuckets.isShared) metrics.set('penstock_shaping_alone', {}, 1);
  const statusCache = createStatusCacheServices(statusPlaces(encryptedState, isAlone), undefined, log);
  const loadShedding = createLoadShedder(reportShedding(log, metrics));
  const notifications = createNotifications({
    state,
    events: statusCache.events,
    isBusy: loadShedding.isBusy,
    maxConnections: config.listen.maxConnections,
    metrics,
    now: statusCache.now,
  });
  const webhookMessages = createWebhookMessageTable(database);
  const webhooks = createWebhooks({
    ...notifications,
    messages: webhookMessages,
    table: createSubscriptionTable(database),
    keys: encryptedState.keys ?? [],
    events: statusCache.events,
    paymentKeyOf,
    log,
    metrics,
    now: statusCache.now,
  });

  const bankNotifications = createBankNotifications({
    table: createBankNotificationTable(database),
    keys: encryptedState.keys ?? [],
    keyValues: state.keyValues,
    events: statusCache.events,
    reads: notifications.reads,
    onBankNotification: webhooks.onBankNotification,
    keepForMs: () => currentConfig.value.notifications.keepFor,
    metrics,
  });
  /** Other installations have no secret. */
  const refreshNotificationSecret = async () => {
    if (receivingEnvironments(currentConfig.value).length > 0) await bankNotifications.tokens.refresh();
  };

  const requestRecords = createRequestRecords({
    table: createRequestRecordTable(database),
    telemetry,
    instance: instanceId,
    settings: () => recordSettingsOf(currentConfig.value),
    tenantNames: names,
  });

  const contractGuard = createContractGuard({
    table: createContractReportTable(database),
    telemetry,
    timeline,
    initiationOf: createInitiationOf(affinity),
    instance: instanceId,
    keepFor: () => currentConfig.value.contract.keepFor,
    isBusy: loadShedding.isBusy,
  });

  const holds = createHolds(createHoldTable(heartbeatDatabase), state.pubsub);
  const adaptiveRates = createAdaptiveRates(state);
  const instanceCounter = createInstanceCounter(instances.countLiving, expectedInstances, telemetry);
  const share = () => (isAlone ? 1 : 1 / instanceCounter.count());
  const takeQuota = createTakeQuota(state.tokenBuckets, share);
  const permits = createPermitSources(state.tokenBuckets, {
    instances: instanceCounter.count,
    share,
    telemetry,
  });
  const databaseHeartbeat = createDatabaseHeartbeat({
    dialect: database.dialect,
    instances,
    prepare: () => prepareDatabase(heartbeatDatabase, config.state),
    recent: ledger.recentWrites,
    readWarnings: () => (isAlone ? Promise.resolve([]) : postgresWarnings(heartbeatDatabase)),
    checkSchema: () => refuseUnusableSchema(heartbeatDatabase, config.state),
    activeEnvironment,
    holds,
    log,
  });
  if (!isAlone)
    metrics.addGaugeSource('penstock_database_warning', () => {
      const warnings = databaseHeartbeat.warnings();
      if (!warnings) return [];
      const present = new Set(warnings.map(({ kind }) => kind));
      return databaseWarningKinds.map((kind) => ({ labels: { kind }, value: Number(present.has(kind)) }));
    });
  const stateHeartbeat = createStateHeartbeat(state);
  const logStateWarnings = createWarningLog(state.warnings, log);
  const maintenance = createPeriodicTask(async () => {
    logStateWarnings();
    await Promise.allSettled([
      timeline.flush(),
      statusCache.invalidation.flush(),
      statusCache.cacheKeys.refreshSecret(),
      refreshNotificationSecret(),
      adaptiveRates.refresh(),
      instanceCounter.refresh(),
    ]);
    return stateHeartbeat.nextIntervalMs();
  });

  const ledgerTask = createPeriodicTask(async () => {
    await Promise.all([ledger.maintain(), databaseMetrics.refresh()]);
    return heartbeatMs;
  });

  const deletionTask = createPeriodicTask(async () => {
    await Promise.allSettled([
      ledger.deleteExpired(),
      affinity.deleteExpired(),
      instances.deleteEnded(),
      requestRecords.deleteExpired(),
      contractGuard.deleteExpired(),
      timeline.deleteExpired(),
      sessions.deleteExpired(),
      webhooks.deleteExpired(),
      bankNotifications.deleteExpired(),
      reports.deleteOld(),
    ]);
    return deletionIntervalMs;
  });

  const audit = recordInTimeline(createAuditLog(createAuditTable(database), log), timeline);
  const resolve = createResolve({
    table: ledger.table,
    wakeRepeats: ledger.wakeRepeats,
    audit: { record: (event) => audit.record({ ...event, details: withNames(event.details) }) },
    environmentNameOf: (environment) => withNames({ environment }).environment,
  });

  return {
    currentConfig,
    telemetry,
    database,
    databaseHeartbeat,
    databaseMetrics,
    instances,
    state,
    instanceId,
    fleet,
    timeline,
    sessions,
    stateHeartbeat,
    identities,
    names,
    activeEnvironment,
    affinity,
    paymentHistory,
    seenStatuses: createSeenStatuses(paymentHistory),
    audit,
    ledger,
    resolve,
    statusCache,
    notifications,
    webhooks,
    webhookMessages,
    bankNotifications,
    holds,
    upstream: { permits, adaptiveRates, holds, timeline },
    requestRecords,
    readInitiation: createReadInitiation({ table: ledger.table, isAlive: instances.isAlive }),
    lookUpLimits: createLookUpLimits({ take: takeQuota }),
    takeQuota,
    contractGuard,
    loadShedding,
    maintenance,
    ledgerTask,
    deletionTask,
    async loadSharedState() {
      await Promise.allSettled([adaptiveRates.refresh(), refreshNotificationSecret()]);
    },
  };
}

/** A database in memory is limited (sqlite.ts), and payments come first. Milliseconds, and bytes of one tenant. */
const keptInMemory = { keepFor: 3_600_000, maxStoredPerTenant: 64 * 1024 ** 2 };

function recordSettingsOf({ requests, state }: Config): Config['requests'] {
  if (state.postgres !== null || state.file !== null) return requests;
  return {
    ...requests,
    keepFor: Math.min(requests.keepFor, keptInMemory.keepFor),
    maxStoredPerTenant: Math.min(requests.maxStoredPerTenant, keptInMemory.maxStoredPerTenant),
  };
}

/**
 * Where statuses are cached. The only instance needs no Redis for it. Several instances share what is in Redis; without it, each of them
 * caches for itself what does not change any more.
 */
function statusPlaces(state: EncryptedState & State, isAlone: boolean): CachePlaces & Pick<State, 'pubsub'> {
  const { keyValues, pubsub } = state;
  if (!state.tokenBuckets.isShared) return { keyValues, pubsub, isUnshared: !isAlone };
  const local = createMemoryState();
  return isAlone ? local : { keyValues, pubsub, own: local.keyValues };
}

/** Every instance notices that another one is lost: the id makes it one entry. */
const fleetEvents = (timeline: Timeline): FleetEvents => ({
  onLost: ({ id, name, version, since, lastSeen, figures }) =>
    timeline.record({
      kind: 'lost',
      instance: name,
      text: `no report since ${lastSeen}: the instance was killed, has crashed, or is cut off`,
      details: { id, version, since, lastSeen, figures },
      id: `lost:${id}:${lastSeen}`,
    }),
  onReturned: ({ id, name, lastSeen }) =>
    timeline.record({
      kind: 'start',
      instance: name,
      text: `reports again, after an interruption since ${lastSeen}`,
      details: { id, lastSeen },
      id: `returned:${id}:${lastSeen}`,
    }),
});

/** Logs when a warning of the state begins, and when the last one has ended. To be called every second. */
function createWarningLog(warnings: State['warnings'], log: Log): () => void {
  let logged: readonly string[] = [];
  return () => {
    const current = warnings();
    for (const why of current)
      if (!logged.includes(why)) log('error', 'the shared state reports a problem', { why });
    if (logged.length > 0 && current.length === 0)
      log('info', 'the shared state reports no problems any more');
    logged = current;
  };
}

interface InstanceCounter {
  /** To be called every second; counts at every fifth call. Never rejects. */
  refresh(): Promise<void>;
  /** The live instances, and at least as many as are expected. */
  count(): number;
}

const refreshesPerCount = 5;

/**
 * Counts the live instances, and warns of more than expected: in an outage of the state they would exceed the bank's rate.
 *
 * @param countLive         counts the instances that share the state, this one included; may reject
 * @param expectedInstances `shaping.expectedInstances`
 */
export function createInstanceCounter(
  countLive: () => Promise<number>,
  expectedInstances: () => number,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
): InstanceCounter {
  let refreshes = 0;
  let live: number | undefined;
  let hasWarned = false;
  metrics.addGaugeSource('penstock_instances_live', () =>
    live === undefined ? [] : [{ labels: {}, value: live }],
  );
  metrics.addGaugeSource('penstock_instances_expected', () => [{ labels: {}, value: expectedInstances() }]);
  return {
    async refresh() {
      if (refreshes++ % refreshesPerCount !== 0) return;
      live = await countLive().catch(() => live);
      const expected = expectedInstances();
      const tooMany = (live ?? 0) > expected;
      if (tooMany && !hasWarned)
        log('warn', 'more instances are running than shaping.expectedInstances', { live, expected });
      hasWarned = tooMany;
    },
    count: () => Math.max(live ?? 0, expectedInstances()),
  };
}
