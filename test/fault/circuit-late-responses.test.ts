/** A write past its deadline, whose late response is still recorded: for the circuit and the queue it ended at the deadline. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { ask, circuitOf } from '../kit/circuits.ts';
import { shortDeadlines, startGatewayWithBank } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const sections = {
  circuit: { minimumCalls: 2, openFor: '1min' },
  deadlines: shortDeadlines.deadlines,
  shaping: { ...shortDeadlines.shaping, maxConcurrent: 1 },
  idempotency: { ...shortDeadlines.idempotency, lateAnswer: '1min' },
};

test('a late write counts as failed at its deadline and frees its slot, and its late response is still recorded', async (t) => {
  const { bank, gateway } = await startGatewayWithBank(t, sections);
  bank.injectFault(
    { name: 'latency', ms: 600_000, strikes: 'before-effect' },
    { operation: 'initiatePayment', times: 2 },
  );
  const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
  const first = { ...initiation, headers: [...initiation.headers, ['X-Request-ID', requestId] as const] };
  assert.equal((await call(gateway.url, first)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
  assert.equal((await ask(gateway, 'read')).status, 404, 'the only slot is free');
  assert.equal((await ask(gateway, 'write')).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
  assert.equal((await circuitOf(gateway, 'write')).state, 'open');
  assert.equal(bank.payments.length, 0, 'the bank has not answered yet');

  bank.endDelays();
  await until(
    10_000,
    'the late response is replayed',
    async () => (await call(gateway.url, first)).status === 201,
  );
  const replayed = await call(gateway.url, first);
  assert.equal(jsonOf(replayed).paymentId, bank.payments[0]?.paymentId);
  assert.equal(bank.requests.filter(({ method }) => method === 'POST').length, 2);
  assert.equal((await circuitOf(gateway, 'write')).state, 'open', 'late responses do not close the circuit');
});
