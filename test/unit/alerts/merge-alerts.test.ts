/** The alerts of several instances together. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canPay } from '../../../src/alerts/can-pay.ts';
import { mergeAlerts } from '../../../src/alerts/merge-alerts.ts';
import type { ReportedAlert } from '../../../src/telemetry/fleet-reports.ts';
import { noonMs } from '../../kit/alert-facts.ts';

const open: ReportedAlert = {
  id: 'circuit-open',
  key: 'circuit-open production',
  severity: 'critical',
  environment: 'production',
  text: 'The write circuit of production is open.',
  sinceMs: noonMs,
};
const slow: ReportedAlert = {
  ...open,
  id: 'bank-slow',
  key: 'bank-slow',
  severity: 'warning',
  text: 'Slow.',
};

describe('the alerts of three instances', () => {
  test('are listed once, with the time of the first instance that has found them', () => {
    const others = ['b', 'c'].map((name) => ({ name, alerts: [{ ...open, sinceMs: noonMs - 1_000 }] }));
    const [alert, ...more] = mergeAlerts({ name: 'a', alerts: [open] }, others);
    assert.deepEqual(more, []);
    assert.deepEqual([alert?.text, alert?.since], [open.text, '2026-11-29T11:59:59.000Z']);
    assert.match(alert?.action ?? '', /probes the bank/);
    assert.match(alert?.guide ?? '', /\/docs\/operations\/circuits\.md$/);
  });

  test('name the instances that find something about themselves, if not all of them do', () => {
    const others = [
      { name: 'b', alerts: [open] },
      { name: 'c', alerts: [] },
    ];
    const alerts = mergeAlerts({ name: 'a', alerts: [slow] }, others);
    assert.deepEqual(
      alerts.map(({ text }) => text),
      ['The write circuit of production is open. Only on b.', 'Slow.'],
    );
    assert.deepEqual(alerts[0]?.instances, ['b']);
  });

  test('are over when they are over on all instances', () => {
    const over = { ...open, text: 'Over.', overAtMs: noonMs };
    const [active] = mergeAlerts({ name: 'a', alerts: [over] }, [{ name: 'b', alerts: [open] }]);
    assert.deepEqual([active?.text, active?.overSince], [`${open.text} Only on b.`, undefined]);
    const later = { ...over, overAtMs: noonMs + 1_000 };
    const [ended] = mergeAlerts({ name: 'a', alerts: [over] }, [{ name: 'b', alerts: [later] }]);
    assert.deepEqual([ended?.text, ended?.overSince], ['Over.', '2026-11-29T12:00:01.000Z']);
  });

  test('begin with the most severe, then the oldest, and leave out those of another version', () => {
    const alerts: readonly ReportedAlert[] = [
      slow,
      { ...slow, key: 'other', sinceMs: noonMs - 1 },
      { ...open, id: 'from-the-future', key: 'new' },
      open,
    ];
    const found = mergeAlerts({ name: 'a', alerts }, []).map(({ id, since }) => `${id} ${since}`);
    assert.deepEqual(found, [
      'circuit-open 2026-11-29T12:00:00.000Z',
      'bank-slow 2026-11-29T11:59:59.999Z',
      'bank-slow 2026-11-29T12:00:00.000Z',
    ]);
  });
});

test('customers cannot pay while an alert that stops payments is critical on all instances; until it is gone, some may', () => {
  const alert = { id: 'initiations-fail', severity: 'critical', environment: 'production' } as const;
  assert.equal(canPay([alert], 'production'), 'no');
  assert.equal(canPay([alert], 'sandbox'), 'yes');
  assert.equal(canPay([{ ...alert, severity: 'warning' }], 'production'), 'some');
  assert.equal(canPay([{ ...alert, overSince: '2026-11-29T12:00:01.000Z' }], 'production'), 'some');
  assert.equal(canPay([{ ...alert, id: 'from-the-future' }], 'production'), 'some');
  assert.equal(canPay([{ ...alert, id: 'database-unavailable', environment: undefined }], 'sandbox'), 'no');
  assert.equal(canPay([{ ...alert, id: 'circuit-open', instances: ['b'] }], 'production'), 'some');
  assert.equal(canPay([{ ...alert, id: 'circuit-open', severity: 'warning' }], 'production'), 'yes');
  assert.equal(canPay([{ ...alert, id: 'in-doubt' }], 'production'), 'yes');
});
