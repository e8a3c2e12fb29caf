/** Which failed calls are retried: never a payment that may have been sent, but reads, which change nothing. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { startCommand } from '../kit/command.ts';
import { type GatewayUnderTest, startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { initiation } from '../kit/request.ts';
import { startTlsBankProxy } from '../kit/tls-bank-proxy.ts';
import { until } from '../kit/within.ts';

const reads = [callOf.read, callOf.status] as const;

describe('call whose connection fails', { concurrency: 3 }, () => {
  for (const fault of ['reset', 'close-before-answering'] as const) {
    for (const read of reads) {
      test(`is retried if it is a read on a reused connection (${fault}, GET ${read.path})`, async (t) => {
        const { bank, gateway } = await startGatewayWithBank(t, { statusCache: { enabled: false } });
        const { reply, sent, isNewConnection } = await failOnReusedConnection({ bank, gateway }, fault, read);
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [404, undefined]);
        assert.equal(sent.length, 2);
        assert.ok(isNewConnection(sent[1]));
      });
    }

    test(`is not retried if it is a payment on a reused connection (${fault})`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      const { reply, sent } = await failOnReusedConnection({ bank, gateway }, fault, initiation);
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], [504, 'OUTCOME_UNKNOWN']);
      assert.equal(sent.length, 1);
    });

    test(`is not retried if it is a read on a new connection (${fault})`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      bank.injectFault({ name: fault }, { times: 1 });
      assert.equal((await call(gateway.url, callOf.read)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
      assert.equal(bank.requests.length, 1);
    });
  }

  test('is retried on a new connection, although other idle connections exist', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'latency', ms: 100, strikes: 'before-effect' }, { times: 3 });
    await Promise.all(Array.from({ length: 3 }, () => call(gateway.url, callOf.read)));
    assert.equal(bank.connections, 3);
    const { reply, sent, isNewConnection } = await failOnReusedConnection(
      { bank, gateway },
      'reset',
      callOf.read,
    );
    assert.equal(reply.status, 404);
    assert.ok(isNewConnection(sent.at(-1)));
  });

  test('is not retried after the first byte of the response', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await call(gateway.url, callOf.read);
    bank.injectFault({ name: 'half-answer' }, { times: 1 });
    assert.equal((await call(gateway.url, callOf.read)).header('Penstock-Error'), 'UPSTREAM_MALFORMED');
    assert.equal(bank.requests.length, 2);
  });

  for (const request of [initiation, ...reads] as readonly Call[]) {
    test(`is retried once if it got no connection: ${request.method} ${request.path}`, async (t) => {
      const bank = await startBank(t);
      const proxy = await startTlsBankProxy(t, bank);
      const gateway = await startGateway(t, { environments: { sandbox: proxy.environment } });
      const resetNext = () => proxy.onNextConnection((socket) => socket.resetAndDestroy());
      resetNext();
      resetNext();
      assert.equal((await call(gateway.url, request)).header('Penstock-Error'), 'UPSTREAM_UNREACHED');
      assert.equal(bank.requests.length, 0);
      resetNext();
      assert.equal((await call(gateway.url, request)).header('Penstock-Error'), undefined);
      assert.equal(bank.requests.length, 1);
    });
  }
});

/**
 * Makes a call that fails on a reused connection. An idle connection is reused only after a short quarantine, which lasts
 * longer on a busy machine: a call on a new connection is no such failure, and the next one follows.
 *
 * @returns the reply, and what the bank received of this call
 */
async function failOnReusedConnection(
  { bank, gateway }: Awaited<ReturnType<typeof startGatewayWithBank>>,
  fault: 'reset' | 'close-before-answering',
  one: Call,
) {
  let [seen, sentBefore] = [new Set<number>(), 0];
  let reply: Reply | undefined;
  await until(10_000, 'the call is on a reused connection', async () => {
    await call(gateway.url, callOf.read); // leaves an idle connection
    seen = new Set(bank.requests.map(({ connection }) => connection));
    sentBefore = bank.requests.length;
    bank.injectFault({ name: fault, strikes: 'before-effect' }, { times: 1 });
    reply = await call(gateway.url, one);
    return seen.has(bank.requests[sentBefore]?.connection ?? -1);
  });
  return {
    reply: reply ?? assert.fail(),
    sent: bank.requests.slice(sentBefore),
    isNewConnection: (request: { readonly connection: number } | undefined) =>
      request !== undefined && !seen.has(request.connection),
  };
}

/** Calls per second, at intervals close to the 20 ms after which the bank closes an idle connection. */
const callRates = [46, 48, 50, 52];

describe('bank that closes connections after 20 ms without a request', () => {
  async function startGateways(t: TestContext, writeSocketIdle: string) {
    const program = startCommand(t, process.execPath, ['test/kit/idle-closing-bank.ts', '20']);
    await program.waitForOutput('port ');
    const baseUrl = `http://127.0.0.1:${/\d+/.exec(program.stdout())?.[0]}`;
    const start = () =>
      startGateway(t, {
        environments: { sandbox: { baseUrl } },
        statusCache: { enabled: false },
        upstream: { writeSocketIdle },
      });
    const requestCounts = async () =>
      Object.entries(jsonOf(await call(baseUrl, { method: 'GET', path: '/seen' })));
    return { gateways: await Promise.all(callRates.map(start)), requestCounts };
  }

  /** Sends many calls just when the bank closes the connection of the previous one. */
  async function callAtIntervals(t: TestContext, gateways: readonly GatewayUnderTest[], one: Call) {
    const agent = new Agent({ keepAlive: true });
    const loads = gateways.map(({ url }, index) =>
      startLoad(t, { perSecond: callRates[index] ?? 50, forMs: 2_000 }, () =>
        measureExchange(one, (again) => call(url, again, agent)),
      ),
    );
    const ended = await Promise.all(loads.map((load) => load.ended));
    agent.destroy();
    return ended.flat();
  }

  test('answers every read', async (t) => {
    const { gateways } = await startGateways(t, '1s');
    const reads = await callAtIntervals(t, gateways, callOf.read);
    assert.deepEqual(failuresIn(reads), {});
  });

  for (const [idle, atMost] of [
    ['1s', 1],
    ['5ms', 0.01],
  ] as const) {
    test(`receives no payment twice, with upstream.writeSocketIdle at ${idle}`, async (t) => {
      const { gateways, requestCounts } = await startGateways(t, idle);
      const payments = await callAtIntervals(t, gateways, initiation);
      const { 'POST: 504 OUTCOME_UNKNOWN': unknown = 0, ...others } = failuresIn(payments);
      assert.deepEqual(others, {});
      assert.ok(unknown <= payments.length * atMost);
      for (const [id, times] of await requestCounts()) assert.equal(times, 1, id);
    });
  }
});
