/** A real console and admin API in front of made-up traffic figures. */

import { createServer } from 'node:http';
import type { TestContext } from 'node:test';
import type { ContractDependencies } from '../../src/admin/contract-handlers.ts';
import type { CanPay } from '../../src/alerts/can-pay.ts';
import type { Alert } from '../../src/alerts/finding.ts';
import type { ManageSubscriptions } from '../../src/notifications/manage-subscriptions.ts';
import type { InstanceFigures } from '../../src/telemetry/fleet-reports.ts';
import type { SecondStats } from '../../src/telemetry/live-stats.ts';
import { passedPreflight, startAdminApi } from '../contract/admin-api-under-test.ts';
import { listen } from '../kit/ports.ts';
import type { AdminAddress } from './browser.ts';

interface SampleDashboard extends AdminAddress {
  /** Of an operator with the role `operate`. */
  readonly token: string;
  /** Appends a second of traffic, and publishes it. */
  addSecond(changes: Partial<SecondStats>): void;
}

interface SampleOptions {
  readonly alerts?: readonly Alert[];
  readonly canPay?: CanPay;
  /** Of the certificate of each environment. */
  readonly daysLeft?: number;
  /** The environments, with the number of calls that wait in each. */
  readonly waiting?: Readonly<Record<string, number>>;
  /** Of the only instance. */
  readonly figures?: Partial<InstanceFigures>;
  readonly subscriptions?: ManageSubscriptions;
  /** The report of the contract guard. */
  readonly contract?: ContractDependencies;
}

/** Starts with five minutes of identical seconds; closed when the test ends. */
export async function startSampleDashboard(
  t: TestContext,
  options: SampleOptions = {},
): Promise<SampleDashboard> {
  const {
    alerts = [],
    canPay = 'yes',
    daysLeft = 200,
    waiting = { sandbox: 0 },
    figures = {},
    subscriptions,
    contract,
  } = options;
  const now = Math.floor(Date.now() / 1_000);
  const seconds = Array.from({ length: 300 }, (_, index) => secondAt(now - 300 + index));
  const queues = Object.entries(waiting).map(([environment, calls]) => ({
    environment,
    waiting: { write: calls, read: 0, status: 0 },
    inFlight: 1,
  }));
  const certificate = { subject: 'CN=tpp.example', notAfter: '2027-01-01T00:00:00.000Z', daysLeft };
  const sources: Parameters<typeof startAdminApi>[1] = {
    recentSeconds: () => seconds,
    alerts: () => alerts,
    canPay: () => canPay,
    environments: () =>
      Object.keys(waiting).map((name) => ({
        name,
        baseUrl: 'https://bank.example',
        standardVersion: '1.3.11',
        production: name === 'production',
        certificate,
        signingCertificate: null,
      })),
    shapers: () =>
      queues.map(({ inFlight: running, ...queue }) => ({
        ...queue,
        running,
        tenantsAtLimit: [],
        perSecond: 50,
        pauses: [],
        pausedPayments: 0,
        longestPauseMs: 0,
        silentWrites: 0,
      })),
    instances: () => [{ ...instance, figures: { ...instance.figures, ...figures }, queues }],
  };
  const { app, events } = startAdminApi(passedPreflight, sources, {}, subscriptions, contract);
  const server = createServer(app);
  const port = await listen(server);
  const timer = setInterval(events.publish, 1_000);
  t.after(() => {
    clearInterval(timer);
    server.close();
    server.closeAllConnections();
  });
  return {
    adminUrl: `http://127.0.0.1:${port}`,
    token: 'token-of-olga',
    addSecond(changes) {
      seconds.push({ ...secondAt((seconds.at(-1)?.at ?? now) + 1), ...changes });
      events.publish();
    },
  };
}

const startedAt = new Date().toISOString();

const instance = {
  id: 'instance-1',
  name: 'instance-1',
  version: '1.0.0',
  since: startedAt,
  lastSeen: startedAt,
  clockDifferenceMs: 0,
  configurationHash: 'a hash',
  reload: null,
  status: 'up',
  ready: true,
  reasons: [],
  figures: {
    requestsPerSecond: 7,
    refusedPerSecond: 0,
    failedPerSecond: 1,
    p50Ms: 40,
    p99Ms: 1_200,
    waiting: 0,
    inFlight: 1,
    waits: 0,
    streams: 0,
    pollsPerSecond: 0,
    overduePolls: 0,
    cpuPercent: 12,
    memoryBytes: 180_000_000,
    eventLoopDelayMs: 2,
  },
  circuits: [],
} as const;

const secondAt = (at: number): SecondStats => ({
  at,
  requests: 7,
  refused: 0,
  failed: 1,
  p50Ms: 40,
  p99Ms: 1_200,
  cache: { hit: 4, shared: 1, miss: 1, stale: 0, bypass: 0 },
});
