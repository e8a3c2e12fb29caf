/** An open circuit is probed with a GET of the gateway, never with a payment; then payments resume one at a time. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { ask, circuitOf, loggedCircuitChanges, waitForCircuit } from '../kit/circuits.ts';
import { type GatewayUnderTest, startGatewayWithBank } from '../kit/gateway.ts';
import { until } from '../kit/within.ts';

const minimumCalls = 4;
const sections = { circuit: { minimumCalls, openFor: '100ms' } };

/** Sends payments, eight at a time, until the condition holds. @returns status and error code of each */
async function payUntil(gateway: GatewayUnderTest, condition: () => boolean): Promise<readonly string[]> {
  const answers: string[] = [];
  const payRepeatedly = () =>
    until(10_000, 'the condition holds', async () => {
      if (condition()) return true;
      const reply = await ask(gateway, 'write');
      answers.push(`${reply.status} ${reply.header('Penstock-Error') ?? 'from the bank'}`);
      return false;
    });
  await Promise.all(Array.from({ length: 8 }, payRepeatedly));
  return answers;
}

const paymentsAt = ({ requests }: SimulatedBank) => requests.filter(({ method }) => method === 'POST');
const probesAt = ({ requests }: SimulatedBank) => requests.filter(({ operation }) => operation === undefined);

describe('write circuit with traffic of payments only', { concurrency: 8 }, () => {
  test('sends a failing bank only GET probes, and payments again after a successful one', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    bank.injectFault({ name: 'status', status: 500 });
    await payUntil(gateway, () => probesAt(bank).length >= 4);
    // On a busy machine, one that was active when the circuit opened arrives after the first probe.
    const [, { arrivedAtMs: secondProbeAtMs } = assert.fail()] = probesAt(bank);
    const late = paymentsAt(bank).filter(({ arrivedAtMs }) => arrivedAtMs > secondProbeAtMs);
    assert.deepEqual(late, [], 'no payment after the second probe');
    assert.ok(paymentsAt(bank).length < minimumCalls + 8, 'at most the active ones when the circuit opened');
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

  test('sends at most one payment per probation while only the probes succeed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    bank.injectFault({ name: 'status', status: 503 }, { operation: 'initiatePayment' });
    await payUntil(gateway, () => probesAt(bank).length >= 5);

    const opened = loggedCircuitChanges(gateway).filter((change) => change.endsWith('> open')).length;
    const firstProbeAtMs = probesAt(bank)[0]?.arrivedAtMs ?? 0;
    const trials = paymentsAt(bank).filter(({ arrivedAtMs }) => arrivedAtMs > firstProbeAtMs);
    assert.ok(trials.length <= opened, `${trials.length} payments in ${opened - 1} probations`);
  });

  test('refuses a second payment on probation while the first is active', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    bank.injectFault({ name: 'status', status: 500 }, { operation: 'initiatePayment', times: minimumCalls });
    for (let calls = 0; calls < minimumCalls; calls++) await ask(gateway, 'write');
    await waitForCircuit(gateway, 'write', 'probation');
    const before = paymentsAt(bank).length;
    bank.injectFault({ name: 'latency', ms: 3_000, strikes: 'before-effect' });
    const first = ask(gateway, 'write');
    await bank.waitUntil(() => paymentsAt(bank).length === before + 1);
    const others = await Promise.all(Array.from({ length: 20 }, () => ask(gateway, 'write')));
    for (const { status, header, text } of others) {
      assert.deepEqual([status, header('Penstock-Error'), header('Retry-After')], [503, 'CIRCUIT_OPEN', '1']);
      assert.match(text, /admits one trial call at a time/);
    }
    assert.equal((await first).status, 201);
    assert.equal(paymentsAt(bank).length, before + 1);
    assert.equal((await circuitOf(gateway, 'write')).state, 'closed');
  });
});
