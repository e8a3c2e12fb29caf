/** What alerts are found in, of a gateway whose instances, stores and banks are well. */

import type { AlertFacts } from '../../src/alerts/find-alerts.ts';
import type { InstanceView } from '../../src/telemetry/fleet.ts';
import type { InitiationCount } from '../../src/telemetry/initiations.ts';
import { instanceReport } from './fleet-reports.ts';

export const noonMs = Date.parse('2026-11-29T12:00:00Z');

/** Two environments, production active; no traffic. */
export const healthyFacts = (more: Partial<AlertFacts> = {}): AlertFacts => ({
  nowMs: noonMs,
  active: 'production',
  isProduction: (environment) => environment === 'production',
  initiationsOf: () => [],
  quietSeconds: () => 0,
  isConfigured: () => true,
  usual: [],
  requests: 0,
  failed: 0,
  doubts: [],
  oldestUnfinishedMs: 0,
  endpoints: [],
  deadMessages: 0,
  failingSubscriptions: 0,
  bankChanges: [],
  internalErrors: [],
  circuits: [],
  limiters: [],
  rateOf: () => 50,
  certificates: [],
  database: {
    problem: undefined,
    warnings: [],
    slowMs: undefined,
    failedOverAtMs: undefined,
    isInMemory: false,
  },
  paymentsStopped: undefined,
  redisProblems: [],
  reloadErrors: [],
  shedding: 'nothing',
  eventLoopDelayMs: 0,
  overduePolls: 0,
  connectionsAcceptedForMs: Number.POSITIVE_INFINITY,
  tenantsWithoutStorage: [],
  tenants: 2,
  ownId: 'gateway-000000000001',
  instances: [instanceView()],
  scope: { isComplete: true, why: null },
  expectedInstances: 3,
  ...more,
});

/** An instance that runs. */
export function instanceView(more: Partial<InstanceView> = {}): InstanceView {
  const { alerts: _, ...report } = instanceReport();
  const id = more.id ?? 'gateway-000000000001';
  const times = { since: '2026-11-29T08:00:00.000Z', lastSeen: '2026-11-29T12:00:00.000Z' };
  return { ...report, ...times, id, name: id, status: 'up', clockDifferenceMs: 0, ...more };
}

/** So many initiations with a result, of the tenant with the number 0. */
export const initiations = (
  count: number,
  result: string,
  more: Partial<InitiationCount> = {},
): InitiationCount => ({
  environment: 'production',
  product: 'payments/sepa-credit-transfers',
  result,
  count,
  tenants: [[0, count]],
  bankMs: result === 'blocked' ? 0 : 50 * count,
  ...more,
});
