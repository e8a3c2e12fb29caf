/** What operators get: their API and console, made of what lasts and of the configuration in effect. */

import { createServer, type Server } from 'node:http';
import type { Operator } from '../admin/access.ts';
import { createAdminApp, type Readiness } from '../admin/admin-app.ts';
import { createEvents, type Events } from '../admin/events.ts';
import { createRoutes } from '../admin/routes.ts';
import type { CertificateFacts } from '../certificates/facts.ts';
import { viewOf } from '../certificates/held.ts';
import { masked } from '../config/masked.ts';
import { createSwitch } from '../environments/switch-environment.ts';
import { createResolve } from '../idempotency/resolve.ts';
import { createHoldCircuit } from '../upstream/circuit/hold-circuit.ts';
import type { Assembly } from './assembly.ts';
import type { Lasting } from './lasting.ts';

/** The door, and the stream of events behind it, which must be ticked. */
export interface OperatorsDoor {
  /** It does not listen yet. */
  readonly server: Server;
  readonly events: Events;
}

interface Parts {
  readonly host: string;
  readonly operators: readonly Operator[];
  readonly lasting: Lasting;
  /** What the configuration in effect has made of the gateway. */
  readonly current: () => Assembly;
  readonly readiness: () => Readiness;
  /** The same, but for certificates that expire: the console counts their days by itself. */
  readonly condition: () => Readiness;
  /** Of the TPP systems' door; none if that speaks plain HTTP. */
  readonly listenerCertificate: () => CertificateFacts | undefined;
}

/** A reload changes what it shows, but neither `host` nor `operators`. */
export function createOperatorsDoor({
  host,
  operators,
  lasting,
  current,
  readiness,
  condition,
  listenerCertificate,
}: Parts): OperatorsDoor {
  const { log, telemetry, active, affinity, audit, ledger, holds, inDoubt } = lasting;
  const { metrics, decisions, figures } = telemetry;
  const tryOut = (name: string) => current().tryOut(name);
  const seen = {
    environments: () => current().environments(),
    active,
    circuits: () => current().upstreams.circuits(),
  };
  const events = createEvents({
    ...seen,
    shapers: () => current().upstreams.shapers(),
    inDoubt,
    readiness: condition,
    listenerCertificate() {
      const facts = listenerCertificate();
      return facts ? viewOf(facts, Date.now()) : null;
    },
    recent: figures.recent,
  });
  const api = createRoutes({
    ...seen,
    switchEnvironment: createSwitch({ active, audit, tryOut }),
    tryOut,
    audit,
    decisions,
    events: events.route,
    holdCircuit: createHoldCircuit(holds, audit),
    configuration: () => masked(current().config),
    purge: (payment) => current().purge(payment),
    doubts: ledger.doubts,
    resolve: createResolve({
      ...ledger,
      audit,
      affinity,
      windowMs: () => current().config.idempotency.window,
    }),
  });
  return { server: createServer(createAdminApp({ host, operators, readiness, metrics, log }, api)), events };
}
