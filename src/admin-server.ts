/** The admin server: connects the admin API, the console and the health checks with the parts that they show and change. */

import type { Server } from 'node:http';
import { createAdminApi } from './admin/admin-api.ts';
import { createAdminApp } from './admin/admin-app.ts';
import { createEventStream, type EventStream } from './admin/event-stream.ts';
import type { OperatorAccess } from './admin/operator-access.ts';
import { createSignIn } from './admin/sign-in.ts';
import { createSignInThrottle } from './admin/sign-in-throttle.ts';
import { createAdminListener } from './admin-listener.ts';
import { certificateView } from './certificates/installed-certificates.ts';
import type { ReloadRequest, ReloadResult } from './config/config-changes.ts';
import { redactConfig } from './config/redact.ts';
import type { Config } from './config/schema.ts';
import { configInFileSyntax } from './config/show-config.ts';
import { createCompareContracts } from './contract-guard/compare-contracts.ts';
import { createIsSwitchBack, createSwitchEnvironment } from './environments/switch-environment.ts';
import type { GatewayAlerts } from './gateway-alerts.ts';
import { type ListenerCertificate, readListenerTls } from './http/listener-tls.ts';
import { createChangeIdentities } from './identities/change-identities.ts';
import { createPaymentViews } from './payments/payment-views.ts';
import type { ReadinessCheck } from './readiness.ts';
import type { RequestHandlers } from './request-handler.ts';
import type { Services } from './services.ts';
import { createHoldCircuit } from './upstream/circuit/holds.ts';

export interface AdminServer {
  /** Not yet listening. */
  readonly server: Server;
  /** Its owner calls `publish` every second. */
  readonly events: EventStream;
  /** Reads the description of the OIDC provider if it is due; to be called every second. Never rejects. */
  refreshOidcProvider(): Promise<void>;
  /** Ends the access of event streams whose sessions have ended on any instance; to be called every second. Never rejects. */
  verifySessions(): Promise<void>;
}

interface AdminServerDependencies {
  /** Not reloadable. */
  readonly tls: Config['admin']['tls'];
  readonly access: OperatorAccess;
  readonly services: Services;
  readonly requestHandlers: RequestHandlers;
  readonly listenerCertificate: ListenerCertificate;
  readonly readiness: ReadinessCheck;
  readonly alerts: Pick<GatewayAlerts, 'current' | 'canPay'>;
  readonly reload: (request: ReloadRequest) => Promise<ReloadResult>;
}

export function createAdminServer({
  tls,
  access,
  services,
  requestHandlers,
  listenerCertificate,
  readiness,
  alerts,
  reload,
}: AdminServerDependencies): AdminServer {
  const { currentConfig, telemetry, activeEnvironment, audit, ledger, holds, names, fleet, timeline } =
    services;
  const { log, metrics } = telemetry;
  const preflight = (environment: string) => requestHandlers.current.preflight(environment);
  const guarded = () => requestHandlers.current.guarded;
  const compareTo = createCompareContracts(services.contractGuard.report, guarded);
  const isSwitchBack = createIsSwitchBack(services.audit);
  const sources = {
    environments: () => requestHandlers.current.environmentViews(),
    active: activeEnvironment,
    circuits: () => requestHandlers.current.upstreams.circuits(),
  };
  const events = createEventStream({
    ...sources,
    shapers: () => requestHandlers.current.upstreams.limiters(),
    inDoubt: ledger.inDoubt.count,
    alerts: alerts.current,
    canPay: alerts.canPay,
    readiness: readiness.withoutCertificates,
    listenerCertificate() {
      const [certificate] = listenerCertificate.certificates();
      return certificate ? certificateView(certificate.info, Date.now()) : null;
    },
    links: () => currentConfig.value.admin.links,
    recentSeconds: fleet.seconds,
    instances: fleet.instances,
    fleet: fleet.scope,
    instanceId: services.instanceId,
    mayRead: access.isValid,
  });
  const changeIdentities = createChangeIdentities({
    table: services.identities,
    clients: () => currentConfig.value.clients,
    audit,
  });
  const throttle = createSignInThrottle();
  const signIn = createSignIn({
    access,
    sessions: services.sessions,
    throttle,
    audit,
    log,
  });
  const api = createAdminApi({
    ...sources,
    readiness: readiness.withCertificates,
    alerts: alerts.current,
    metrics,
    switchEnvironment: createSwitchEnvironment({
      active: activeEnvironment,
      audit,
      environmentNames: () => currentConfig.value.environments.all.map(({ name }) => name),
      preflight,
      compareContracts: compareTo,
      isSwitchBack,
    }),
    preflight,
    isSwitchBack,
    audit,
    fleet,
    timeline,
    requestRecords: services.requestRecords,
    events,
    holdCircuit: createHoldCircuit(holds, audit),
    configuration: () => redactConfig(currentConfig.value),
    configurationFile: () => configInFileSyntax(currentConfig.value),
    reload,
    purge: (payment) => requestHandlers.current.purgeStatusCache(payment),
    inDoubt: {
      async all() {
        const writes = await ledger.inDoubt.all();
        return writes.map(({ id, entry }) => ({ id, entry: names.withNames(entry) }));
      },
    },
    payments: createPaymentViews({
      table: services.paymentHistory,
      messages: services.webhookMessages,
      audit,
      names,
      recordsKeptForMs: () => currentConfig.value.requests.keepFor,
    }),
    subscriptions: services.webhooks.manage,
    pollLimits: () =>
      requestHandlers.current.upstreams.limiters().map(({ environment, perSecond }) => ({
        environment,
        perSecond: perSecond * currentConfig.value.notifications.share,
      })),
    contractReport: services.contractGuard.report,
    guarded,
    compareTo,
    resolve: services.resolve,
    async changeIdentities(change) {
      const result = await changeIdentities(change);
      await requestHandlers.current.identities.refresh(); // the others read them within a second
      return result;
    },
    signIn: signIn.handlers,
  });
  const app = createAdminApp({ access, throttle, log, api });
  return {
    server: createAdminListener(app, log, readListenerTls(tls)),
    events,
    refreshOidcProvider: signIn.refreshProvider,
    async verifySessions() {
      const open = events
        .operators()
        .flatMap(({ credential }) => (credential.kind === 'session' ? [credential.session] : []));
      const ended = await services.sessions.endedOf(open).catch(() => []); // unknown: they end by their expiry
      for (const { key } of ended) access.revokeSession(key);
    },
  };
}
