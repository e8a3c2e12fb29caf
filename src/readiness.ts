/** Whether this instance can take requests, for health checks, load balancers and the console. */

import type { Readiness } from './admin/dashboard-snapshot.ts';
import { expiryWarning, type InstalledCertificate } from './certificates/installed-certificates.ts';
import type { StateSettings } from './config/schema.ts';
import type { ListenerCertificate } from './http/listener-tls.ts';
import type { RequestHandlers } from './request-handler.ts';
import type { Services } from './services.ts';
import { lostOnRestart } from './state/create-state.ts';

export interface ReadinessCheck {
  /** Set by the gateway. Only a serving instance is ready. */
  phase: 'closed' | 'serving' | 'draining';
  /** Adds another listener, whose certificate may expire. */
  addListener(certificate: ListenerCertificate): void;
  /** Those of the listeners and of the environments. */
  certificates(): readonly InstalledCertificate[];
  /** With warnings of certificates that expire soon. */
  withCertificates(): Readiness;
  /** Why new payments are refused, although the database can be used. */
  paymentsStopped(): string | undefined;
  /** For what has alerts of certificates. */
  withoutCertificates(): Readiness;
}

interface ReadinessDependencies {
  readonly services: Pick<Services, 'state' | 'databaseHeartbeat' | 'stateHeartbeat'>;
  readonly stateSettings: StateSettings;
  readonly listenerCertificate: ListenerCertificate;
  readonly requestHandlers: RequestHandlers;
}

export function createReadinessCheck({
  services,
  stateSettings,
  listenerCertificate,
  requestHandlers,
}: ReadinessDependencies): ReadinessCheck {
  const listeners = [listenerCertificate];
  const certificates = (): readonly InstalledCertificate[] => [
    ...listeners.flatMap((listener) => listener.certificates()),
    ...requestHandlers.current.upstreams.certificates(),
  ];
  function activeProblem(): string | undefined {
    const active = requestHandlers.current.unconfiguredActive();
    if (active === undefined) return undefined;
    return `new payments are refused: the active environment "${active}" is not configured; configure it, or activate another one with penstock environment use`;
  }

  const check: ReadinessCheck = {
    phase: 'closed',
    certificates,
    addListener: (certificate) => void listeners.push(certificate),
    withCertificates() {
      const { ready, reasons } = check.withoutCertificates();
      const expiring = certificates().flatMap((certificate) => expiryWarning(certificate, Date.now()) ?? []);
      return { ready, reasons: [...reasons, ...expiring] };
    },
    paymentsStopped() {
      if (services.databaseHeartbeat.problem() !== undefined) return undefined; // that is the only cause
      return requestHandlers.current.identities.problem() ?? activeProblem();
    },
    withoutCertificates() {
      const problem = services.databaseHeartbeat.problem();
      const identitiesProblem = check.paymentsStopped();
      const reasons = [
        check.phase === 'serving' ? [] : check.phase,
        problem ?? [],
        identitiesProblem ?? [],
        (services.databaseHeartbeat.warnings() ?? []).map(({ text }) => text),
        services.stateHeartbeat.problem() ?? [], // no request needs Redis
        services.state.warnings(),
        lostOnRestart(stateSettings) ?? [],
      ].flat();
      const isUsable = (problem ?? identitiesProblem) === undefined;
      return { ready: check.phase === 'serving' && isUsable, reasons };
    },
  };
  return check;
}
