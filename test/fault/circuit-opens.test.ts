/** The circuit of a lane opens after the configured number of failures, and closes when the bank works again. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { call, jsonOf } from '../kit/call.ts';
import { ask, askInTurn, circuitOf, lanes, loggedCircuitChanges, waitForCircuit } from '../kit/circuits.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

/** How a bank fails. @returns ends it */
type Failure = (bank: SimulatedBank) => Promise<() => unknown>;

const failures: Readonly<Record<string, Failure>> = {
  'answers 503': async (bank) => {
    bank.injectFault({ name: 'status', status: 503 });
    return bank.clearFaults;
  },
  'times out': async (bank) => {
    bank.injectFault({ name: 'never-answer' });
    return bank.clearFaults;
  },
  'refuses connections': async (bank) => {
    const port = Number(new URL(bank.baseUrl).port);
    await bank.stop();
    return () => bank.start(port);
  },
};

/** Why the first call failed, as operators see it. */
const causes: Readonly<Record<string, RegExp>> = {
  'answers 503': /^the bank answered 503$/,
  'times out': /^OUTCOME_UNKNOWN: The bank did not respond before the deadline\.$/,
  'refuses connections': /^UPSTREAM_UNREACHED: The bank is unreachable.* \(ECONNREFUSED\)$/,
};

const minimumCalls = 5;
const sections = {
  statusCache: { enabled: false },
  circuit: { minimumCalls, window: '1min', openFor: '1s' },
};

/** For a bank that does not respond. A busy machine needs most of it to connect and send. */
const deadline = '1s';
const shortDeadlines = {
  deadlines: { connect: '800ms', status: deadline, read: deadline, write: deadline },
  idempotency: { wait: '50ms', lateAnswer: '1s' },
};

/** What the gateway itself asks a bank: none of the eight operations. */
const probesAt = ({ requests }: SimulatedBank) =>
  requests.filter(({ operation }) => operation === undefined).length;

describe('the circuit of a bank', { concurrency: 3 }, () => {
  for (const [failure, begin] of Object.entries(failures)) {
    for (const lane of lanes) {
      test(`that ${failure} stops the calls of the lane ${lane} after ${minimumCalls} failures, until a probe succeeds`, async (t) => {
        const { bank, gateway } = await startGatewayWithBank(t, {
          ...sections,
          ...(failure === 'times out' && shortDeadlines),
        });
        const end = await begin(bank);
        const requestIds: (string | undefined)[] = [];
        for (let calls = 0; calls < minimumCalls; calls++) {
          assert.equal((await circuitOf(gateway, lane)).state, 'closed', `after ${calls} failures`);
          requestIds.push((await ask(gateway, lane)).header('X-Request-ID'));
        }
        const { state, reason, cause } = await circuitOf(gateway, lane);
        assert.deepEqual([state, reason], ['open', '5 of 5 calls failed']);
        assert.deepEqual([cause?.xRequestId, cause?.count], [requestIds[0], minimumCalls]);
        assert.match(cause?.why ?? '', causes[failure] ?? assert.fail());

        const reached = bank.requests.length;
        const replies = await askInTurn(t, 20, (agent) => ask(gateway, lane, agent));
        const whileOpen = bank.requests.length - reached;
        for (const reply of replies) {
          assertRefused(reply, 503, 'CIRCUIT_OPEN', 'SERVICE_UNAVAILABLE');
          const seconds = reply.header('Retry-After');
          assert.match(seconds ?? '', /^[12]$/);
          assert.ok(reply.text.includes(`Try again in ${seconds} s.`), reply.text);
        }
        assert.equal(whileOpen, probesAt(bank), 'the bank sees none of them');
        for (const other of lanes) {
          if (other !== lane) assert.equal((await circuitOf(gateway, other)).state, 'closed', other);
        }
        const probed = probesAt(bank);
        await end();
        await waitForCircuit(gateway, lane, lane === 'write' ? 'probation' : 'closed');
        assert.equal(probesAt(bank) - probed, 1, 'one probe after it is back');
        if (lane === 'write') assert.deepEqual((await circuitOf(gateway, lane)).cause, cause, 'on probation');
        const { status } = await ask(gateway, lane);
        assert.equal(status, lane === 'write' ? 201 : 404);
        const closed = await circuitOf(gateway, lane);
        assert.deepEqual([closed.state, closed.cause], ['closed', null]);
        const open = `${lane}: closed > open`;
        assert.equal(loggedCircuitChanges(gateway).filter((change) => change === open).length, 1);
      });
    }
  }
});

test('the gateway serves the last known status, marked as stale, while the circuit is open', async (t) => {
  const { statusCache: _, ...rest } = sections;
  const statusCache = { pendingTtl: '100ms', pendingTtlMax: '100ms' };
  const { bank, gateway } = await startGatewayWithBank(t, { ...rest, statusCache });
  const paymentId = String(jsonOf(await call(gateway.url, initiation)).paymentId);
  const read = () => call(gateway.url, { method: 'GET', path: `${transfersPath}/${paymentId}/status` });
  assert.equal((await read()).status, 200);

  bank.injectFault({ name: 'status', status: 500 });
  for (let calls = 0; calls < minimumCalls; calls++) await ask(gateway, 'status');
  assert.equal((await circuitOf(gateway, 'status')).state, 'open');
  const reached = bank.requests.length;
  const isStale = async () => /; hit; fwd=stale;/.test((await read()).header('Cache-Status') ?? '');
  await until(5_000, 'what is known is not fresh any more', isStale);
  const stale = await read();
  assert.deepEqual([stale.status, stale.header('Penstock-Error')], [200, undefined]);
  assert.equal(typeof jsonOf(stale).transactionStatus, 'string');
  assert.equal(bank.requests.length, reached);
});
