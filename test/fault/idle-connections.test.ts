import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Sections, startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { callOn, logLineOf, methods, startWithPayment } from './fault-contract.ts';

const response = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const aPayment = `${transfersPath}/a-payment`;

/** A bank that answers immediately, and a gateway that has an idle connection to it. */
async function startWithIdleConnection(t: TestContext, sections: Sections = {}) {
  const bank = await startPlainServer(t, (socket) => void socket.write(response));
  const environments = { sandbox: { baseUrl: `http://127.0.0.1:${bank.port}` } };
  const gateway = await startGateway(t, { environments, ...sections });
  const get = async () =>
    (await within(4_000, 'an answer', call(gateway.url, newCall('GET', aPayment)))).status;
  assert.equal(await get(), 200);
  return { bank, get };
}

const isClosed = (socket: Socket | undefined) => () => socket?.destroyed === true;

describe('idle connection to the bank', { concurrency: 8 }, () => {
  test('is reused by the next call', async (t) => {
    const { bank, get } = await startWithIdleConnection(t);
    // The quarantine before a reuse takes longer on a busy machine: a call in that time opens another connection.
    await until(5_000, 'a call opens no connection', async () => {
      const before = bank.connections.length;
      assert.equal(await get(), 200);
      return bank.connections.length === before;
    });
  });

  test('is replaced by a new one when the bank has closed it', async (t) => {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const { bank, get } = await startWithIdleConnection(t);
      bank.connections[0]?.[leave]();
      await until(2_000, 'both sides have closed', isClosed(bank.connections[0]));
      assert.equal(await get(), 200);
      assert.equal(bank.connections.length, 2);
    }
  });

  test('is closed by the gateway after upstream.idle', async (t) => {
    const { bank, get } = await startWithIdleConnection(t, {
      upstream: { idle: '50ms', writeSocketIdle: '50ms' },
    });
    await until(2_000, 'the gateway has closed it', isClosed(bank.connections[0]));
    assert.equal(await get(), 200);
    assert.equal(bank.connections.length, 2);
  });

  test('is not confused with a busy one whose response takes longer than upstream.idle', async (t) => {
    const setup = await startWithPayment(t, { upstream: { idle: '50ms', writeSocketIdle: '50ms' } });
    setup.bank.injectFault({ name: 'latency', ms: 250 });
    const reply = await within(4_000, 'an answer', call(setup.gateway.url, callOn(setup, 'POST')));
    assert.equal(reply.status, 201);
  });

  for (const method of methods) {
    test(`may be closed by the bank after every response: a ${method} reaches the bank once`, async (t) => {
      const setup = await startWithPayment(t);
      const { bank, gateway } = setup;
      const before = bank.requests.length;
      bank.injectFault({ name: 'close-idle' });
      const request = callOn(setup, method);
      const reply = await within(4_000, 'an answer', call(gateway.url, request));

      assert.ok(reply.status < 300);
      assert.equal(logLineOf(gateway, request).status, reply.status);
      assert.equal(bank.requests.length - before, 1);
      // A call that uses the connection while the bank closes it fails, and is never sent twice.
      await until(4_000, 'a call gets through again', async () => {
        return (await call(gateway.url, callOn(setup, 'GET'))).status === 200;
      });
    });
  }
});
