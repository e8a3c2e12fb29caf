/** What operators get: their API and console, made of what lasts and of the configuration in effect. */

import { createServer, type Server } from 'node:http';
import { createAdminApi } from './admin/admin-api.ts';
import { createAdminApp, type Readiness } from './admin/admin-app.ts';
import type { Operator } from './admin/authenticate-operator.ts';
import { createEventStream, type EventStream } from './admin/event-stream.ts';
import type { CertificateInfo } from './certificates/certificate-info.ts';
import { certificateView } from './certificates/installed-certificates.ts';
import { redactConfig } from './config/redact.ts';
import { createSwitchEnvironment } from './environments/switch-environment.ts';
import { createResolve } from './idempotency/resolve.ts';
import type { RequestHandler } from './request-handler.ts';
import type { Services } from './services.ts';
import { createHoldCircuit } from './upstream/circuit/holds.ts';

/** The door, and the stream of events behind it, which must be ticked. */
export interface AdminServer {
  /** It does not listen yet. */
  readonly server: Server;
  readonly events: EventStream;
}

interface AdminServerDependencies {
  readonly host: string;
  readonly operators: readonly Operator[];
  readonly services: Services;
  /** What the configuration in effect has made of the gateway. */
  readonly current: () => RequestHandler;
  readonly readiness: () => Readiness;
  /** The same, but for certificates that expire: the console counts their days by itself. */
  readonly condition: () => Readiness;
  /** Of the TPP systems' door; none if that speaks plain HTTP. */
  readonly listenerCertificate: () => CertificateInfo | undefined;
}

/** A reload changes what it shows, but neither `host` nor `operators`. */
export function createAdminServer({
  host,
  operators,
  services,
  current,
  readiness,
  condition,
  listenerCertificate,
}: AdminServerDependencies): AdminServer {
  const { log, telemetry, activeEnvironment, affinity, audit, ledger, holds, inDoubtCount } = services;
  const { metrics, recentRequests, liveStats } = telemetry;
  const tryOut = (name: string) => current().preflight(name);
  const sources = {
    environments: () => current().environmentViews(),
    active: activeEnvironment,
    circuits: () => current().upstreams.circuits(),
  };
  const events = createEventStream({
    ...sources,
    shapers: () => current().upstreams.limiters(),
    inDoubt: inDoubtCount,
    readiness: condition,
    listenerCertificate() {
      const facts = listenerCertificate();
      return facts ? certificateView(facts, Date.now()) : null;
    },
    recentSeconds: liveStats.recent,
  });
  const api = createAdminApi({
    ...sources,
    switchEnvironment: createSwitchEnvironment({ active: activeEnvironment, audit, preflight: tryOut }),
    tryOut,
    audit,
    decisions: recentRequests,
    events: events.handler,
    holdCircuit: createHoldCircuit(holds, audit),
    configuration: () => redactConfig(current().config),
    purge: (payment) => current().purgeStatusCache(payment),
    inDoubt: ledger.inDoubt,
    resolve: createResolve({
      ...ledger,
      audit,
      affinity,
      windowMs: () => current().config.idempotency.window,
    }),
  });
  return { server: createServer(createAdminApp({ host, operators, readiness, metrics, log }, api)), events };
}
