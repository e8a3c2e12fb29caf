import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { TimelineEvent } from '../../../../src/telemetry/timeline.ts';
import { reportChanges } from '../../../../src/upstream/circuit/report-changes.ts';
import type { CircuitChange } from '../../../../src/upstream/circuit/tenant-circuits.ts';

function start() {
  const recorded: TimelineEvent[] = [];
  const logged: unknown[] = [];
  const report = reportChanges((_level, _message, fields) => void logged.push(fields), {
    record: (event) => void recorded.push(event),
  });
  return { recorded, logged, report };
}

const opened: CircuitChange = {
  ...{ environment: 'sandbox', lane: 'write', tenant: 'shop', from: 'closed', to: 'open' },
  why: '10 of 10 calls failed',
  cause: null,
};

test('the changes of several tenants at once are one entry of the timeline, and a log line each', async () => {
  const { recorded, logged, report } = start();
  for (const tenant of ['shop', 'bookshop', 'baker']) report({ ...opened, tenant });
  report({ ...opened, lane: 'read' });
  await setImmediate();
  assert.deepEqual(
    recorded.map(({ text }) => text),
    [
      'write circuit of sandbox, 3 tenants: opened; 10 of 10 calls failed',
      'read circuit of sandbox, tenant shop: opened; 10 of 10 calls failed',
    ],
  );
  assert.deepEqual(recorded[0]?.details?.tenants, ['shop', 'bookshop', 'baker']);
  assert.equal(logged.length, 4);
});

test('the first failed call is in the log and in the timeline', async () => {
  const { recorded, logged, report } = start();
  const cause = {
    xRequestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    operation: 'initiatePayment',
    tenant: 'shop',
    why: 'the bank answered 503',
    at: '2026-11-21T01:00:00.000Z',
    openedAt: '2026-11-21T01:00:02.000Z',
    count: 10,
    calls: 10,
  };
  report({ ...opened, cause });
  await setImmediate();
  const { cause: _, ...change } = opened;
  assert.deepEqual(logged, [{ ...change, requestId: cause.xRequestId, cause: cause.why }]);
  assert.deepEqual(recorded[0]?.details?.cause, cause);
});

test('the probes of an open circuit are in the log only', async () => {
  const { recorded, logged, report } = start();
  report({ ...opened, from: 'open', to: 'half-open', why: 'circuit.openFor has elapsed' });
  report({ ...opened, from: 'half-open', to: 'open', why: 'the probe failed' });
  report({ ...opened, from: 'half-open', to: 'probation', why: 'the probe succeeded' });
  report({ ...opened, from: 'probation', to: 'open', why: 'the trial call failed' });
  await setImmediate();
  assert.deepEqual(
    recorded.map(({ details }) => [details?.from, details?.to]),
    [
      ['half-open', 'probation'],
      ['probation', 'open'],
    ],
  );
  assert.equal(logged.length, 4);
});
