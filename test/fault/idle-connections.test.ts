import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Sections, startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfers } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { callOn, logLineOf, methods, startWithPayment } from './fault-contract.ts';

const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const aPayment = `${transfers}/a-payment`;

/** A bank that answers every request at once, and a gateway that has just called it. */
async function startCalled(t: TestContext, sections: Sections = {}) {
  const bank = await startPlainServer(t, (socket) => void socket.write(answer));
  const environments = { sandbox: { baseUrl: `http://127.0.0.1:${bank.port}` } };
  const gateway = await startGateway(t, { environments, ...sections });
  const get = async () =>
    (await within(4_000, 'an answer', call(gateway.url, newCall('GET', aPayment)))).status;
  assert.equal(await get(), 200);
  return { bank, get };
}

const isClosed = (socket: Socket | undefined) => () => socket?.destroyed === true;

describe('a connection that nobody uses (E14)', { concurrency: true }, () => {
  test('is kept for the next call', async (t) => {
    const { bank, get } = await startCalled(t);
    assert.equal(await get(), 200);
    assert.equal(bank.connections.length, 1);
  });

  test('is forgotten when the bank closes it: the next call takes a new one', async (t) => {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const { bank, get } = await startCalled(t);
      bank.connections[0]?.[leave]();
      await until(2_000, 'both sides have closed', isClosed(bank.connections[0]));
      assert.equal(await get(), 200);
      assert.equal(bank.connections.length, 2);
    }
  });

  test('is closed by the gateway after upstream.idle, before the bank would do it', async (t) => {
    const { bank, get } = await startCalled(t, { upstream: { idle: '50ms', writeSocketIdle: '50ms' } });
    await until(2_000, 'the gateway has closed it', isClosed(bank.connections[0]));
    assert.equal(await get(), 200);
    assert.equal(bank.connections.length, 2);
  });

  test('is not mistaken for one whose bank takes longer than upstream.idle to answer', async (t) => {
    const line = await startWithPayment(t, { upstream: { idle: '50ms', writeSocketIdle: '50ms' } });
    line.bank.injectFault({ name: 'latency', ms: 250 });
    const reply = await within(4_000, 'an answer', call(line.gateway.url, callOn(line, 'POST')));
    assert.equal(reply.status, 201);
  });

  for (const method of methods) {
    test(`may be closed by the bank behind every answer: a ${method} still reaches it once`, async (t) => {
      const line = await startWithPayment(t);
      const { bank, gateway } = line;
      const before = bank.requests.length;
      bank.injectFault({ name: 'close-idle' });
      const request = callOn(line, method);
      const reply = await within(4_000, 'an answer', call(gateway.url, request));

      assert.ok(reply.status < 300);
      assert.equal(logLineOf(gateway, request).status, reply.status);
      assert.equal(bank.requests.length - before, 1);
      // A call that meets the connection while it closes is lost: it fails, and is never sent twice.
      await until(4_000, 'a call gets through again', async () => {
        return (await call(gateway.url, callOn(line, 'GET'))).status === 200;
      });
    });
  }
});
