import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { within } from '../kit/within.ts';

const refusalResponse =
  'HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large';

/** The largest body that the gateway accepts: more than the socket buffers hold. */
const large = { ...newCall('POST', transfersPath), body: ' '.repeat(1024 * 1024) };

describe('bank that answers 413 before it has read the body', () => {
  test('has its response passed on, although the rest of the body cannot be sent', async (t) => {
    const bank = await startPlainServer(t, (socket) => {
      socket.pause();
      socket.end(refusalResponse);
    });
    const sandbox = { baseUrl: `http://127.0.0.1:${bank.port}` };
    const gateway = await startGateway(t, { environments: { sandbox } });

    const reply = await within(4_000, 'an answer', call(gateway.url, large));

    assert.equal(reply.status, 413);
    assert.equal(reply.text, 'too large');
    assert.equal(bank.connections.length, 1);
  });

  test('receives the request once, and the next call succeeds', async (t) => {
    const bank = await startBank(t);
    const sandbox = { baseUrl: bank.baseUrl };
    const gateway = await startGateway(t, { environments: { sandbox } });
    bank.injectFault({ name: 'status', status: 413, strikes: 'before-reading' }, { times: 1 });

    assert.equal((await within(4_000, 'an answer', call(gateway.url, large))).status, 413);
    assert.equal(bank.requests.length, 1);
    const next = await within(4_000, 'an answer', call(gateway.url, newCall('POST', transfersPath)));
    assert.equal(next.status, 201);
    assert.equal(bank.payments.length, 1);
  });
});
