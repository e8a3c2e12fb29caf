/** An open circuit is probed by a GET of the gateway's own, never by a payment; and one payment at a time is then tried. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { ask, circuitOf, loggedCircuitChanges, waitForCircuit } from '../kit/circuits.ts';
import { type GatewayUnderTest, startLine } from '../kit/gateway.ts';
import { until } from '../kit/within.ts';

const openForMs = 100;
const minimumCalls = 4;
const sections = { circuit: { minimumCalls, openFor: `${openForMs}ms` } };

/** TPPs that send payments, eight at a time, until the condition holds. @returns how each was answered */
async function payUntil(gateway: GatewayUnderTest, condition: () => boolean): Promise<readonly string[]> {
  const answers: string[] = [];
  const payOn = () =>
    until(10_000, 'enough is paid', async () => {
      if (condition()) return true;
      const reply = await ask(gateway, 'write');
      answers.push(`${reply.status} ${reply.header('Penstock-Error') ?? 'of the bank'}`);
      return false;
    });
  await Promise.all(Array.from({ length: 8 }, payOn));
  return answers;
}

const paymentsAt = ({ requests }: SimulatedBank) => requests.filter(({ method }) => method === 'POST');
const probesAt = ({ requests }: SimulatedBank) => requests.filter(({ operation }) => operation === undefined);

describe('while nothing but payments come', { concurrency: true }, () => {
  test('a bank that fails sees the first ones, then GET probes alone, and again a payment when it answers one', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
    bank.injectFault({ name: 'status', status: 500 });
    await payUntil(gateway, () => probesAt(bank).length >= 4);
    const [firstProbe] = probesAt(bank);
    const before = paymentsAt(bank).filter(({ arrivedAtMs }) => arrivedAtMs < (firstProbe?.arrivedAtMs ?? 0));
    assert.equal(paymentsAt(bank).length, before.length, 'no payment from the first probe on');
    assert.ok(before.length < minimumCalls + 8, 'what was under way when it opened, at most');
    assert.ok(probesAt(bank).every(({ method, body }) => method === 'GET' && body.length === 0));

    bank.clearFaults();
    const failed = { probes: probesAt(bank).length, payments: paymentsAt(bank).length };
    await payUntil(gateway, () => bank.payments.length > 0);
    assert.equal(probesAt(bank).length - failed.probes, 1);
    const [, ...later] = loggedCircuitChanges(gateway).slice(-4);
    assert.deepEqual(later, [
      'write: open > half-open',
      'write: half-open > probation',
      'write: probation > closed',
    ]);
  });

  test('a bank whose front answers the probe with 404 gets one failing payment a probation, and ever longer pauses', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
    bank.injectFault({ name: 'status', status: 503 }, { operation: 'initiatePayment' });
    await payUntil(gateway, () => probesAt(bank).length >= 5);

    const opened = loggedCircuitChanges(gateway).filter((change) => change.endsWith('> open')).length;
    const [firstProbe, ...probes] = probesAt(bank).map(({ arrivedAtMs }) => arrivedAtMs);
    const since = paymentsAt(bank).filter(({ arrivedAtMs }) => arrivedAtMs > (firstProbe ?? 0));
    assert.ok(since.length <= opened, `${since.length} payments in ${opened - 1} probations`);
    const pausesMs = probes.map((atMs, index) => atMs - ([firstProbe, ...probes][index] ?? 0));
    t.diagnostic(`pauses of ${pausesMs.map((ms) => Math.round(ms)).join(', ')} ms, a payment after each`);
    for (const [index, pauseMs] of pausesMs.entries()) {
      assert.ok(pauseMs >= openForMs * 2 ** (index + 1), `pause ${index + 1} was ${pauseMs} ms`);
    }
  });

  test('on probation, the second of two payments is refused while the first is under way', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
    bank.injectFault({ name: 'status', status: 500 }, { operation: 'initiatePayment', times: minimumCalls });
    for (let calls = 0; calls < minimumCalls; calls++) await ask(gateway, 'write');
    await waitForCircuit(gateway, 'write', 'probation');
    const before = paymentsAt(bank).length;
    bank.injectFault({ name: 'latency', ms: 300, strikes: 'before-effect' });
    const first = ask(gateway, 'write');
    await bank.waitUntil(() => paymentsAt(bank).length === before + 1);
    const others = await Promise.all(Array.from({ length: 20 }, () => ask(gateway, 'write')));
    for (const { status, header, text } of others) {
      assert.deepEqual([status, header('Penstock-Error'), header('Retry-After')], [503, 'CIRCUIT_OPEN', '1']);
      assert.match(text, /tried with one call at a time/);
    }
    assert.equal((await first).status, 201);
    assert.equal(paymentsAt(bank).length, before + 1);
    assert.equal((await circuitOf(gateway, 'write')).state, 'closed');
  });
});
