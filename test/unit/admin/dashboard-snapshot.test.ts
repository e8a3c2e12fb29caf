import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createDashboard, type DashboardSources } from '../../../src/admin/dashboard-snapshot.ts';
import type { SecondStats } from '../../../src/telemetry/live-stats.ts';
import type { CircuitView } from '../../../src/upstream/circuit/circuit.ts';

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
};

const sandbox = {
  name: 'sandbox',
  baseUrl: 'https://bank.example',
  standardVersion: '1.3.11',
  certificate: null,
  signingCertificate: null,
};

const sights: DashboardSources = {
  active: { known: () => ({ environment: 'sandbox', version: 3 }) },
  environments: () => [sandbox],
  circuits: () => [circuit],
  shapers: () => [
    {
      environment: 'sandbox',
      running: 1,
      perSecond: 50,
      pausedMs: 0,
      waiting: { write: 1, read: 2, status: 4 },
    },
  ],
  inDoubt: () => undefined,
  readiness: () => ({ ready: true, reasons: [] }),
  listenerCertificate: () => null,
  recentSeconds: () => [second(1), second(2)],
};

describe('a collector', () => {
  test('gives everything in a snapshot, before it has looked once', () => {
    const { active, version, inDoubt, seconds, samples } = createDashboard(sights).snapshot();
    assert.deepEqual([active, version, inDoubt, seconds.length, samples], ['sandbox', 3, null, 2, []]);
  });

  test('sums up who waits, and counts a held circuit as held', () => {
    const held = { ...circuit, lane: 'read', hold: 'open' } as const;
    const { sample } = createDashboard({ ...sights, circuits: () => [circuit, held] }, () => 7_900).refresh();
    assert.deepEqual(sample, {
      at: 7,
      waiting: { sandbox: 7 },
      circuits: { 'sandbox write': 'closed', 'sandbox read': 'held-open' },
    });
  });

  test('gives each second once, whatever the figures still keep', () => {
    let seconds = [second(1), second(2)];
    const { refresh } = createDashboard({ ...sights, recentSeconds: () => seconds });
    const told = () => refresh().seconds.map(({ at }) => at);
    assert.deepEqual(told(), [1, 2]);
    assert.deepEqual(told(), []);
    seconds = [second(2), second(3), second(4)];
    assert.deepEqual(told(), [3, 4]);
  });

  test('keeps five minutes', () => {
    let now = 0;
    const { refresh, snapshot } = createDashboard(sights, () => {
      now += 1_000;
      return now;
    });
    for (let looks = 0; looks < 305; looks++) refresh();
    const { samples } = snapshot();
    assert.deepEqual([samples.length, samples[0]?.at, samples.at(-1)?.at], [300, 6, 305]);
  });

  test('shows of an environment only what operators are shown, not its settings', () => {
    const settings = { ...sandbox, keyFile: '/secret' };
    const { environments } = createDashboard({ ...sights, environments: () => [settings] }).snapshot();
    assert.doesNotMatch(JSON.stringify(environments), /secret/);
  });
});
