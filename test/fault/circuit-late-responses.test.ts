/** A write that is listened for beyond its deadline: to the circuit, and to the others who wait, it is over at the deadline. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { ask, circuitOf } from '../kit/circuits.ts';
import { startLine } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const sections = {
  circuit: { minimumCalls: 2, openFor: '1min' },
  shaping: { maxConcurrent: 1, maxWait: { write: '400ms', read: '3s', status: '400ms' } },
  deadlines: { connect: '300ms', status: '500ms', write: '500ms' },
  idempotency: { wait: '100ms', lateAnswer: '1min' },
};

test('a write that is too late counts at its deadline, frees its slot, and its answer is still taken', async (t) => {
  const { bank, gateway } = await startLine(t, sections);
  const gate = 4_000;
  bank.injectFault(
    { name: 'latency', ms: gate, strikes: 'before-effect' },
    { operation: 'initiatePayment', times: 2 },
  );
  const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
  const first = { ...initiation, headers: [...initiation.headers, ['X-Request-ID', requestId] as const] };
  const beganMs = performance.now();
  assert.equal((await call(gateway.url, first)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
  assert.equal((await ask(gateway, 'read')).status, 404, 'the one slot is free');
  assert.equal((await ask(gateway, 'write')).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
  const { state } = await circuitOf(gateway, 'write');
  const openedMs = performance.now() - beganMs;
  assert.equal(state, 'open');
  assert.ok(openedMs < gate, `opened after ${openedMs} ms, when the bank had not answered yet`);
  assert.equal(bank.payments.length, 0);
  t.diagnostic(
    `open after ${openedMs.toFixed(0)} ms, with deadlines of 500 ms and a bank that takes ${gate} ms`,
  );

  await until(
    10_000,
    'the late answer is replayed',
    async () => (await call(gateway.url, first)).status === 201,
  );
  const again = await call(gateway.url, first);
  assert.equal(jsonOf(again).paymentId, bank.payments[0]?.paymentId);
  assert.equal(bank.requests.filter(({ method }) => method === 'POST').length, 2);
  assert.equal((await circuitOf(gateway, 'write')).state, 'open', 'late answers close nothing');
});
