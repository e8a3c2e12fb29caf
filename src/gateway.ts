/** The gateway: creates all parts in order, starts, reloads, drains and stops them. */

import { createOperatorAccess } from './admin/operator-access.ts';
import type { ReadAdminCredentials } from './admin/operators.ts';
import { createAdminServer } from './admin-server.ts';
import { createBankNotificationServer } from './bank-notification-server.ts';
import type { ReloadReport, ReloadRequest, ReloadResult } from './config/config-changes.ts';
import type { Config } from './config/schema.ts';
import { createFleetTasks } from './fleet-tasks.ts';
import { createGatewayAlerts } from './gateway-alerts.ts';
import {
  closeServer,
  createListener,
  defaultListenerLimits,
  reportRefusedConnections,
  tppErrorResponse,
} from './http/listener.ts';
import { readListenerTls, watchListenerTls } from './http/listener-tls.ts';
import { openConfiguredServer } from './http/open-configured-server.ts';
import { reusePortWarning } from './http/reuse-port.ts';
import { createPeriodicTask, heartbeatMs } from './periodic-task.ts';
import { createReadinessCheck } from './readiness.ts';
import { createConfigReloader, type LoadConfig } from './reload-config.ts';
import { asGatewayError } from './request/errors.ts';
import { createRequestHandlers } from './request-handler.ts';
import { createServices, type Stores } from './services.ts';
import { createState, lostOnRestart } from './state/create-state.ts';
import type { State } from './state/ports.ts';
import { openGatewayDatabase } from './store/gateway-database.ts';
import type { Log } from './telemetry/log.ts';
import { observeRefusal } from './telemetry/observe.ts';

export interface Gateway {
  /**
   * Opens all listeners. If one cannot be opened, closes the others.
   *
   * @throws Error with a sentence that says what to change
   */
  start(): Promise<StartedGateway>;
  /**
   * Uses another configuration for all requests to come.
   *
   * @throws Error if a file that the configuration names cannot be used, or if its tenants or environments contradict those in the
   *   database; the previous configuration stays in effect
   */
  reload(config: Config): Promise<ReloadReport>;
  /** Loads the configuration again, uses it for all requests to come, and logs the result. Never rejects. */
  reloadFromSource(request: ReloadRequest): Promise<ReloadResult>;
  /** The configuration in effect. */
  config(): Config;
  /** Announces the end (not ready, `Connection: close`), and continues to serve. */
  drain(): void;
  /** Takes no new connections, waits for running requests, and closes everything. @param why for the timeline, such as a signal */
  stop(why?: string): Promise<void>;
}

export interface StartedGateway {
  readonly tppPort: number;
  readonly adminPort: number;
  /** Of `notifications.listen`, if it is set. */
  readonly notificationPort: number | undefined;
  /** Identifies this instance among those that share the state; new after every start. */
  readonly instanceId: string;
}

/** Where a gateway comes from. */
export interface GatewayOrigin {
  /** Identifies this instance among those that share the state, and must be new after every start; by default a random one. */
  readonly instanceId?: string;
  /** Loads the configuration again; without it, operators cannot reload. */
  readonly loadConfig?: LoadConfig;
}

/** Interval at which deviations from the standard are written to their report. Milliseconds. */
const contractReportMs = 5_000;

/** Interval at which alerts read what only the database knows. Milliseconds. */
const alertFactsMs = 5_000;

/** Interval at which certificate files are read. A change takes effect when two reads find the same. Milliseconds. */
const filePollMs = 500;

/**
 * Does not listen yet.
 *
 * @param readCredentials reads the tokens of operators, now and at each reload
 * @param given instead of the stores that the configuration names
 */
export function assembleGateway(
  config: Config,
  log: Log,
  readCredentials: ReadAdminCredentials = noCredentials,
  given: Partial<Stores> = {},
  { instanceId, loadConfig }: GatewayOrigin = {},
): Gateway {
  const stores = withConfiguredStores(given, config, log);
  const { state, database, heartbeatDatabase } = stores;
  const services = createServices(config, log, stores, instanceId);
  const requestHandlers = createRequestHandlers(config, services);
  const { telemetry } = services;

  const listener = createListener(
    (request, response) => requestHandlers.current.serve(request, response),
    observeRefusal(telemetry.observer),
    {
      limits: {
        ...defaultListenerLimits,
        keepAliveTimeout: config.listen.idleTimeout,
        maxConnections: config.listen.maxConnections,
      },
      tls: readListenerTls(config.listen.tls),
      errorResponse: (error) => tppErrorResponse(error, services.currentConfig.value.listen.errorPageUrl),
    },
  );
  const connectionRefusedAtMs = reportRefusedConnections(listener.server, log, telemetry.metrics);
  const listenerCertificate = watchListenerTls(
    config.listen.tls,
    listener.server,
    telemetry,
    services.timeline,
  );

  const access = createOperatorAccess(config.admin, readCredentials(config.admin), services.sessions);
  const readiness = createReadinessCheck({
    services,
    stateSettings: config.state,
    listenerCertificate,
    requestHandlers,
  });
  const reloader = createConfigReloader({
    start: config,
    requestHandlers,
    services,
    access,
    readCredentials,
    load: loadConfig,
  });
  const alerts = createGatewayAlerts({
    services,
    requestHandlers,
    readiness,
    reloadErrors: reloader.errors,
    connectionsAcceptedForMs: () => performance.now() - connectionRefusedAtMs(),
  });
  const {
    server: adminServer,
    events,
    ...adminTasks
  } = createAdminServer({
    tls: config.admin.tls,
    access,
    services,
    requestHandlers,
    listenerCertificate,
    readiness,
    alerts,
    reload: reloader.reload,
  });
  const adminCertificate = watchListenerTls(
    config.admin.tls,
    adminServer,
    telemetry,
    services.timeline,
    'admin-listener',
  );
  readiness.addListener(adminCertificate);
  const bankNotificationServer = createBankNotificationServer(config, services, requestHandlers);
  readiness.addListener(bankNotificationServer.certificate);

  const fleetTasks = createFleetTasks({
    services,
    requestHandlers,
    listenerCertificate,
    readiness,
    alerts,
    events,
    reload: reloader.reload,
  });
  // A task of its own: it must not wait for the shared state.
  const filePolling = createPeriodicTask(async () => {
    await Promise.all([
      listenerCertificate.refresh(),
      adminCertificate.refresh(),
      bankNotificationServer.certificate.refresh(),
      requestHandlers.current.upstreams.pollCertificateFiles(),
    ]);
    return filePollMs;
  });
  // A task of its own, without the delays of the others: a killed instance loses at most the records of its last second.
  const requestLogTask = createPeriodicTask(async () => {
    const startedAtMs = performance.now();
    await services.requestRecords.flush();
    return Math.max(1, heartbeatMs - (performance.now() - startedAtMs));
  });
  const seenStatusesTask = createPeriodicTask(async () => {
    await services.seenStatuses.flush();
    return heartbeatMs;
  });
  const contractReportTask = createPeriodicTask(async () => {
    await services.contractGuard.flush();
    return contractReportMs;
  });
  const identitiesTask = createPeriodicTask(async () => {
    await requestHandlers.current.identities.refresh();
    return heartbeatMs;
  });
  const oidcTask = createPeriodicTask(async () => {
    await adminTasks.refreshOidcProvider();
    return heartbeatMs;
  });
  const sessionsTask = createPeriodicTask(async () => {
    await adminTasks.verifySessions();
    return heartbeatMs;
  });
  const alertsTask = createPeriodicTask(async () => {
    await alerts.refresh();
    return alertFactsMs;
  });
  const webhooksTask = createPeriodicTask(async () => {
    services.webhooks.run();
    return heartbeatMs;
  });
  const tasks = [
    alertsTask,
    webhooksTask,
    identitiesTask,
    oidcTask,
    sessionsTask,
    services.databaseHeartbeat,
    services.stateHeartbeat,
    services.maintenance,
    services.ledgerTask,
    services.deletionTask,
    filePolling,
    requestLogTask,
    seenStatusesTask,
    services.loadShedding,
    services.contractGuard,
    contractReportTask,
  ];

  function drain(): void {
    readiness.phase = 'draining';
    listener.drain();
    bankNotificationServer.drain();
    services.notifications.statusListeners.drain();
    events.close();
  }

  /** An unreachable database does not prevent the start: requests are refused until the identities are known. */
  async function establishIdentities(): Promise<void> {
    await requestHandlers.current.identities.establish().catch((thrown: unknown) => {
      if (asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') throw thrown;
    });
  }

  async function stop(why?: string): Promise<void> {
    drain();
    await Promise.all([listener.close(), closeServer(adminServer), bankNotificationServer.close()]);
    readiness.phase = 'closed';
    for (const task of tasks) task.stop();
    await services.bankNotifications.receiver.stop();
    await services.webhooks.stop();
    await services.requestRecords.flush();
    await services.contractGuard.close();
    await fleetTasks.stop(why);
    requestHandlers.current.upstreams.close();
    await services.ledger.flush();
    await services.seenStatuses.flush();
    await services.instances.deregister().catch(() => {}); // the others notice it after the lease
    await state.close();
    await heartbeatDatabase.close();
    if (database !== heartbeatDatabase) await database.close();
    await telemetry.close();
  }

  return {
    async start() {
      try {
        const warning = config.listen.reusePort ? reusePortWarning() : undefined;
        if (warning) log('warn', warning);
        if (config.upstream.proxy === null && usesHttpsProxy(config)) log('warn', unusedProxy);
        await services.databaseHeartbeat.first();
        await state.open();
        await telemetry.open();
        await establishIdentities();
        await services.loadSharedState();
        await requestHandlers.current.guarded.prepareEnforced();
        const { host, port, reusePort } = config.listen;
        const adminAddress = { host: config.admin.host, port: config.admin.port };
        const adminPort = await openConfiguredServer(adminServer, 'admin', adminAddress);
        const notificationPort = await bankNotificationServer.open();
        const tppPort = await openConfiguredServer(listener.server, 'listen', { host, port, reusePort });
        for (const task of tasks) task.start();
        readiness.phase = 'serving';
        fleetTasks.start();
        return { tppPort, adminPort, notificationPort, instanceId: services.instanceId };
      } catch (cause) {
        await stop();
        throw cause;
      }
    },
    reload: reloader.apply,
    reloadFromSource: reloader.reload,
    config: () => services.currentConfig.value,
    drain,
    stop,
  };
}

const usesHttpsProxy = ({ environments: { variables } }: Config) =>
  (variables.HTTPS_PROXY ?? variables.https_proxy ?? '') !== '';

const unusedProxy =
  'HTTPS_PROXY is set, but the gateway connects to the bank without it; set upstream.proxy: environment to use it, or remove the variable';

const noCredentials: ReadAdminCredentials = () => ({
  operators: [],
  oidcClientSecret: undefined,
  oidcCa: undefined,
});

function withConfiguredStores(given: Partial<Stores>, config: Config, log: Log): Stores {
  const { database, heartbeatDatabase = database } = given;
  const databases =
    database && heartbeatDatabase ? { database, heartbeatDatabase } : openGatewayDatabase(config.state);
  return { ...databases, state: given.state ?? createConfiguredState(config, log) };
}

function createConfiguredState({ state }: Config, log: Log): State {
  const lost = lostOnRestart(state);
  if (lost) log('warn', lost);
  return createState(state, (problem) => {
    if (problem === undefined) log('info', 'Redis available again');
    else log('error', 'Redis unavailable', { why: problem });
  });
}
