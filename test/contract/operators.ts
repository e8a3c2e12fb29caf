/** The operators' API in front of a switch, an audit log and a state that are real; only the bank is not. */

import { createHash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createAdminApp } from '../../src/admin/admin-app.ts';
import type { Sights } from '../../src/admin/collector.ts';
import { createEvents, type Events } from '../../src/admin/events.ts';
import { createRoutes } from '../../src/admin/routes.ts';
import { createActiveEnvironment } from '../../src/environments/active-environment.ts';
import { createAudit } from '../../src/environments/audit.ts';
import type { PreflightReport } from '../../src/environments/preflight.ts';
import { createSwitch } from '../../src/environments/switch-environment.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createFailingState, type FailingState } from '../kit/failing-state.ts';
import { createLogLines, type LogLine } from '../kit/log-lines.ts';

/** Credentials: Olga may change things, Rita may look. */
export const olga = { Authorization: 'Bearer token-of-olga' };
export const rita = { Authorization: 'Bearer token-of-rita' };

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const operators = [
  { name: 'olga', tokenSha256: sha256('token-of-olga'), role: 'operate' },
  { name: 'rita', tokenSha256: sha256('token-of-rita'), role: 'read' },
] as const;

const none = { circuits: [], certificate: null, signingCertificate: null };
export const environments = [
  { name: 'sandbox', baseUrl: 'https://sandbox.bank.example', standardVersion: '1.3.11', ...none },
  { name: 'production', baseUrl: 'https://bank.example/psd2', standardVersion: '1.3.6', ...none },
];

export const healthy: PreflightReport = {
  ok: true,
  steps: [{ step: 'answer', ok: true, detail: 'status 200' }],
};
export const failing: PreflightReport = {
  ok: false,
  steps: [{ step: 'tcp', ok: false, detail: 'ECONNREFUSED' }],
};

interface OperatorsUnderTest {
  readonly app: RequestListener;
  readonly state: FailingState;
  readonly lines: readonly LogLine[];
  readonly events: Pick<Events, 'tick' | 'end'>;
}

/** An application; every pre-flight of its switch comes to this. @param sights what the console is to see, beside that */
export function startOperators(report = healthy, sights: Partial<Sights> = {}): OperatorsUnderTest {
  const state = createFailingState();
  const { log, lines } = createLogLines();
  const active = createActiveEnvironment(state, 'sandbox', log);
  const audit = createAudit(state.keyValues, log);
  const tryOut = (name: string) =>
    environments.some((environment) => environment.name === name) ? Promise.resolve(report) : undefined;
  const seen = { environments: () => environments, active, circuits: () => [] };
  const readiness = () => ({ ready: true, reasons: [] });
  const events = createEvents({
    ...seen,
    readiness,
    shapers: () => [],
    inDoubt: () => undefined,
    recent: () => [],
    listenerCertificate: () => null,
    ...sights,
  });
  const api = createRoutes({
    ...seen,
    tryOut,
    events: events.route,
    switchEnvironment: createSwitch({ active, audit, tryOut }),
    audit,
    purge: async () => {},
    holdCircuit: async () => {},
    decisions: { of: () => [] },
    doubts: { all: async () => [] },
    resolve: async () => ({ kind: 'unknown' }),
    configuration: () => ({ log: { level: 'info' } }),
  });
  return {
    events,
    app: createAdminApp(
      { host: 'gateway.internal', operators, readiness, metrics: createMetrics(), log },
      api,
    ),
    state,
    lines,
  };
}
