import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showCircuits } from '../../../src/commands/circuits.ts';

const until = '2026-11-21T01:02:03.000Z';
const open = { state: 'open', until, reason: '10 of 10 calls failed' };
const lane = { environment: 'sandbox', hold: null, until: null, reason: null, tenants: [] };

test('penstock circuits shows each tenant whose circuit is in another state than the lane', async () => {
  const body = [
    { ...lane, lane: 'write', state: 'closed', tenants: [{ tenant: 'shop', ...open }] },
    { ...lane, ...open, lane: 'read', tenants: [{ tenant: 'shop', ...open }] },
    { ...lane, lane: 'status', state: 'closed', hold: 'open', until, reason: 'maintenance' },
  ];
  const { lines } = await showCircuits(async () => ({ ok: true, status: 200, body }));
  assert.deepEqual(lines, [
    'sandbox      write   closed',
    `sandbox      write   open       for shop until ${until} 10 of 10 calls failed`,
    `sandbox      read    open       until ${until} 10 of 10 calls failed`,
    `sandbox      status  closed     held open until ${until} maintenance`,
  ]);
});
