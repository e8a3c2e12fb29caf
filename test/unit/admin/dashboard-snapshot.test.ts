import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createDashboard, type DashboardSources } from '../../../src/admin/dashboard-snapshot.ts';
import type { SecondStats } from '../../../src/telemetry/live-stats.ts';
import type { CircuitView } from '../../../src/upstream/circuit/tenant-circuits.ts';
import { instanceReport } from '../../kit/fleet-reports.ts';

const second = (at: number): SecondStats => ({
  at,
  requests: 1,
  refused: 0,
  failed: 0,
  p50Ms: 5,
  p99Ms: 9,
  cache: { hit: 0, shared: 0, miss: 1, stale: 0, bypass: 0 },
});

const circuit: CircuitView = {
  environment: 'sandbox',
  lane: 'write',
  state: 'closed',
  hold: null,
  until: null,
  reason: null,
  cause: null,
  tenants: [],
};

const sandbox = {
  name: 'sandbox',
  baseUrl: 'https://bank.example',
  standardVersion: '1.3.11',
  production: false,
  certificate: null,
  signingCertificate: null,
};

const sources: DashboardSources = {
  active: { known: () => ({ environment: 'sandbox', version: 3 }) },
  environments: () => [sandbox],
  circuits: () => [circuit],
  shapers: () => [
    {
      environment: 'sandbox',
      running: 1,
      tenantsAtLimit: [],
      perSecond: 50,
      pauses: [],
      pausedPayments: 0,
      longestPauseMs: 0,
      silentWrites: 0,
      waiting: { write: 1, read: 2, status: 4 },
    },
  ],
  inDoubt: () => undefined,
  alerts: () => [],
  canPay: () => 'yes',
  readiness: () => ({ ready: true, reasons: [] }),
  listenerCertificate: () => null,
  links: () => ({ grafana: null, traces: null }),
  recentSeconds: () => [second(1), second(2)],
  instances: () => [],
  fleet: () => ({ isComplete: true, why: null }),
};

describe('the dashboard', () => {
  test('gives the complete state in a snapshot before the first refresh', () => {
    const { active, version, inDoubt, seconds, samples } = createDashboard(sources).snapshot();
    assert.deepEqual([active, version, inDoubt, seconds.length, samples], ['sandbox', 3, null, 2, []]);
  });

  test('samples the waiting calls of all instances, and the circuit that admits fewest calls', () => {
    const held = { ...circuit, lane: 'read', hold: 'open' } as const;
    const open = { ...circuit, cause: null, state: 'open', tenants: [] } as const;
    const waiting = { write: 1, read: 2, status: 4 };
    const running = {
      ...instanceReport(),
      ...{ id: 'one', name: 'one', since: '', clockDifferenceMs: 0 },
      queues: [{ environment: 'sandbox', waiting, inFlight: 1 }],
      status: 'up' as const,
      lastSeen: '',
    };
    const instances = () => [
      running,
      { ...running, circuits: [open, { ...open, lane: 'read' as const }] },
      { ...running, circuits: [{ ...open, lane: 'status' as const }], status: 'down' as const },
    ];
    const { sample } = createDashboard(
      { ...sources, circuits: () => [circuit, held], instances },
      () => 7_900,
    ).refresh();
    assert.deepEqual(sample, {
      at: 7,
      waiting: { sandbox: 14 },
      circuits: { 'sandbox write': 'open', 'sandbox read': 'held-open' },
    });
  });

  test('reports each second of traffic once, and again when it has changed', () => {
    const [first, last] = [second(2), second(3)];
    let seconds = [second(1), first];
    const { refresh } = createDashboard({ ...sources, recentSeconds: () => seconds });
    const newSeconds = () => refresh().seconds.map(({ at }) => at);
    assert.deepEqual(newSeconds(), [1, 2]);
    assert.deepEqual(newSeconds(), []);
    seconds = [first, last, second(4)];
    assert.deepEqual(newSeconds(), [3, 4]);
    seconds = [first, last, second(4)];
    assert.deepEqual(newSeconds(), [4]);
  });

  test('keeps the samples of five minutes', () => {
    let now = 0;
    const { refresh, snapshot } = createDashboard(sources, () => {
      now += 1_000;
      return now;
    });
    for (let count = 0; count < 305; count++) refresh();
    const { samples } = snapshot();
    assert.deepEqual([samples.length, samples[0]?.at, samples.at(-1)?.at], [300, 6, 305]);
  });

  test('leaves all other settings of an environment out', () => {
    const settings = { ...sandbox, keyFile: '/secret' };
    const { environments } = createDashboard({ ...sources, environments: () => [settings] }).snapshot();
    assert.doesNotMatch(JSON.stringify(environments), /secret/);
  });
});
