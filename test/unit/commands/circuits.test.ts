import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { holdCircuit, releaseCircuit, showCircuits } from '../../../src/commands/circuits.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const until = '2026-11-21T01:02:03.000Z';
const open = { state: 'open', until, reason: '10 of 10 calls failed', cause: null };
const lane = { environment: 'sandbox', hold: null, until: null, reason: null, cause: null, tenants: [] };

test('penstock circuits shows each tenant whose circuit is in another state than the lane', async () => {
  const body = [
    { ...lane, lane: 'write', state: 'closed', tenants: [{ tenant: 'shop', ...open }] },
    { ...lane, ...open, lane: 'read', tenants: [{ tenant: 'shop', ...open }] },
    { ...lane, lane: 'status', state: 'closed', hold: 'open', until, reason: 'maintenance' },
  ];
  const { lines, data } = await showCircuits(fakeAdminClient(200, body).call);
  assert.equal(data, body);
  assert.deepEqual(lines, [
    'sandbox      write   closed',
    `sandbox      write   open       for shop until ${until} 10 of 10 calls failed`,
    `sandbox      read    open       until ${until} 10 of 10 calls failed`,
    `sandbox      status  closed     held open until ${until} maintenance`,
  ]);
});

test('penstock circuits shows the first failed call of an open circuit', async () => {
  const cause = {
    at: '2026-11-21T01:00:00.000Z',
    why: 'the bank answered 503',
    xRequestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    operation: 'initiatePayment',
    tenant: 'shop',
    count: 12,
    calls: 20,
  };
  const body = [{ ...lane, ...open, lane: 'write', cause }];
  const { lines } = await showCircuits(fakeAdminClient(200, body).call);
  assert.deepEqual(lines.slice(1), [
    '  cause: 2026-11-21T01:00:00.000Z, initiatePayment of shop, X-Request-ID 99391c7e-ad88-49ec-a2ad-99ddcb1f7721: the bank answered 503',
    '  12 of 20 calls had failed when it opened',
  ]);
});

describe('penstock circuits hold', () => {
  const change = { environment: 'sand box', lane: 'write', reason: 'maintenance' };
  const held = { ...lane, lane: 'write', state: 'closed', hold: 'open', until, reason: 'maintenance' };

  test('sends the hold with its reason and duration, and prints the circuit afterwards', async () => {
    const { call, calls } = fakeAdminClient(200, held);
    const { lines } = await holdCircuit(call, { ...change, hold: 'open', duration: '30min' });
    assert.deepEqual(lines, [`sandbox      write   closed     held open until ${until} maintenance`]);
    const body = { hold: 'open', reason: 'maintenance', for: '30min' };
    assert.deepEqual(calls, [['PUT', '/circuits/sand%20box/write', body]]);
  });

  test('is undone by release', async () => {
    const { call, calls } = fakeAdminClient(200, { ...held, hold: null, until: null, reason: null });
    await releaseCircuit(call, change);
    assert.deepEqual(calls[0]?.[2], { hold: null, reason: 'maintenance' });
  });
});
