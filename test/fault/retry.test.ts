/** What is sent once more, and what never is: a payment must not be made twice, and a read may as well be asked again. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { startCommand } from '../kit/command.ts';
import { type GatewayUnderTest, startBank, startGateway, startLine } from '../kit/gateway.ts';
import { exchange, failuresIn, startLoad } from '../kit/load.ts';
import { initiation } from '../kit/request.ts';
import { startTlsBankProxy } from '../kit/tls-bank-proxy.ts';

const reads = [callOf.read, callOf.status] as const;

describe('a connection that breaks before a byte of an answer (E14)', { concurrency: true }, () => {
  for (const fault of ['reset', 'close-before-answering'] as const) {
    for (const read of reads) {
      test(`had been used before (${fault}): GET ${read.path} is sent once more, and answered`, async (t) => {
        const { bank, gateway } = await startLine(t, { statusCache: { enabled: false } });
        await call(gateway.url, read); // leaves a connection that is kept
        bank.injectFault({ name: fault }, { times: 1 });
        const reply = await call(gateway.url, read);
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [404, undefined]);
        const connections = bank.requests.map(({ connection }) => connection);
        assert.deepEqual(connections, [1, 1, 2]);
      });
    }

    test(`had been used before (${fault}): a payment is not sent again`, async (t) => {
      const { bank, gateway } = await startLine(t);
      assert.equal((await call(gateway.url, initiation)).status, 201);
      bank.injectFault({ name: fault, strikes: 'before-effect' }, { times: 1 });
      const reply = await call(gateway.url, initiation);
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], [504, 'OUTCOME_UNKNOWN']);
      assert.equal(bank.requests.length, 2);
    });

    test(`is new (${fault}): a read is not sent again either`, async (t) => {
      const { bank, gateway } = await startLine(t);
      bank.injectFault({ name: fault }, { times: 1 });
      assert.equal((await call(gateway.url, callOf.read)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
      assert.equal(bank.requests.length, 1);
    });
  }

  test('is one of several that are kept: a read is sent once more on a new one, for the others may be as dead', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'latency', ms: 100, strikes: 'before-effect' }, { times: 3 });
    await Promise.all(Array.from({ length: 3 }, () => call(gateway.url, callOf.read)));
    assert.equal(bank.connections, 3);
    bank.injectFault({ name: 'reset' }, { times: 1 });
    assert.equal((await call(gateway.url, callOf.read)).status, 404);
    assert.equal(bank.requests.at(-1)?.connection, 4);
  });

  test('breaks behind the first byte: a read is not sent again', async (t) => {
    const { bank, gateway } = await startLine(t);
    await call(gateway.url, callOf.read);
    bank.injectFault({ name: 'half-answer' }, { times: 1 });
    assert.equal((await call(gateway.url, callOf.read)).header('Penstock-Error'), 'UPSTREAM_MALFORMED');
    assert.equal(bank.requests.length, 2);
  });

  for (const one of [initiation, ...reads] as readonly Call[]) {
    test(`was never made: ${one.method} ${one.path} is tried once more, and no third time`, async (t) => {
      const bank = await startBank(t);
      const door = await startTlsBankProxy(t, bank);
      const gateway = await startGateway(t, { environments: { sandbox: door.environment } });
      const shut = () => door.onNextConnection((socket) => socket.resetAndDestroy());
      shut();
      shut();
      assert.equal((await call(gateway.url, one)).header('Penstock-Error'), 'UPSTREAM_UNREACHED');
      assert.equal(bank.requests.length, 0);
      shut();
      assert.equal((await call(gateway.url, one)).header('Penstock-Error'), undefined);
      assert.equal(bank.requests.length, 1);
    });
  }
});

/**
 * The story: a bank closes what was idle for a while, and the gateway takes just that connection for the next call. Both
 * are right, and the call is lost.
 */
/** Calls a second: an interval is about as long as the bank keeps a connection. */
const paces = [46, 48, 50, 52];

describe('a bank that closes connections when they were idle for 20 ms (E14)', { concurrency: true }, () => {
  async function startBefore(t: TestContext, writeSocketIdle: string) {
    const program = startCommand(t, process.execPath, ['test/kit/idle-closing-bank.ts', '20']);
    await program.waitForOutput('port ');
    const baseUrl = `http://127.0.0.1:${/\d+/.exec(program.stdout())?.[0]}`;
    const start = () =>
      startGateway(t, {
        environments: { sandbox: { baseUrl } },
        statusCache: { enabled: false },
        upstream: { writeSocketIdle },
      });
    const seen = async () => Object.entries(jsonOf(await call(baseUrl, { method: 'GET', path: '/seen' })));
    return { gateways: await Promise.all(paces.map(start)), seen };
  }

  /** Calls in such intervals that many come just when the connection of the one before is closed. */
  async function paced(t: TestContext, gateways: readonly GatewayUnderTest[], one: Call) {
    const agent = new Agent({ keepAlive: true });
    const loads = gateways.map(({ url }, index) =>
      startLoad(t, { perSecond: paces[index] ?? 50, forMs: 3_000 }, () =>
        exchange(one, (again) => call(url, again, agent)),
      ),
    );
    const ended = await Promise.all(loads.map((load) => load.ended));
    agent.destroy();
    return ended.flat();
  }

  test('reads succeed', async (t) => {
    const { gateways } = await startBefore(t, '1s');
    const reads = await paced(t, gateways, callOf.read);
    assert.deepEqual(failuresIn(reads), {});
  });

  for (const [idle, atMost] of [
    ['1s', 1],
    ['5ms', 0.01],
  ] as const) {
    test(`no payment comes twice, with upstream.writeSocketIdle at ${idle}`, async (t) => {
      const { gateways, seen } = await startBefore(t, idle);
      const payments = await paced(t, gateways, initiation);
      const { 'POST: 504 OUTCOME_UNKNOWN': lost = 0, ...others } = failuresIn(payments);
      assert.deepEqual(others, {});
      assert.ok(lost <= payments.length * atMost);
      for (const [id, times] of await seen()) assert.equal(times, 1, id);
    });
  }
});
