/** What happens to connections and requests when the gateway stops. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { assembleGateway } from '../../src/gateway.ts';
import { configOf, startBank } from '../kit/gateway.ts';
import { startPlainListener } from '../kit/plain-listener.ts';
import { isOpen } from '../kit/ports.ts';
import { connectRaw } from '../kit/raw-connection.ts';
import { statusRead } from '../kit/request.ts';
import { within } from '../kit/within.ts';

const silent = () => {};

const configFor = (baseUrl: string) =>
  configOf({ listen: { port: 0 }, admin: { port: 0 }, environments: { sandbox: { baseUrl } } });

describe('a gateway that stops (H1)', () => {
  test('closes the public and the admin listener', async (t) => {
    const gateway = assembleGateway(configFor('https://bank.example'), silent);
    const { tppPort, adminPort } = await gateway.start();
    t.after(() => gateway.stop());
    assert.deepEqual([await isOpen(tppPort), await isOpen(adminPort)], [true, true]);
    await within(5_000, 'the gateway to stop', gateway.stop());
    assert.deepEqual([await isOpen(tppPort), await isOpen(adminPort)], [false, false]);
  });

  test('completes a running request, and does not wait for idle connections', async (t) => {
    const bank = await startBank(t);
    const gateway = assembleGateway(configFor(bank.baseUrl), silent);
    const { tppPort } = await gateway.start();
    const idle = await connectRaw(tppPort);
    const busy = await connectRaw(tppPort);
    t.after(idle.destroy);
    t.after(busy.destroy);
    bank.injectFault({ name: 'latency', ms: 300 });
    busy.send(
      `GET ${statusRead.path} HTTP/1.1\r\nHost: a\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\n\r\n`,
    );
    await bank.waitUntil(() => bank.requests.length === 1);

    const stopped = gateway.stop();

    assert.equal((await busy.answer()).status, 404);
    await within(5_000, 'the gateway to stop', stopped);
    await Promise.all([idle.closed(), busy.closed()]);
  });
});

describe('a listener that is closed (H1)', () => {
  test('still answers a request on a connection that was accepted just before', async (t) => {
    const { port, listener } = await startPlainListener(t, (_request, response) => {
      response.setHeader('Connection', 'close').end('late');
    });
    const accepted = once(listener.server, 'connection');
    const client = await connectRaw(port);
    t.after(client.destroy);
    await accepted;

    const closed = listener.close();
    client.send('GET / HTTP/1.1\r\nHost: gateway.example\r\n\r\n');

    assert.equal((await client.answer()).status, 200);
    await within(5_000, 'the listener to close', closed);
  });

  test('still limits the time that a client may take to send its request', async (t) => {
    const { port, listener, refusals } = await startPlainListener(t, (request, response) => {
      request.on('error', () => response.writeHead(408, { 'Content-Length': 0 }).end()).resume();
    });
    const received = once(listener.server, 'request');
    const client = await connectRaw(port);
    t.after(client.destroy);
    client.send('POST / HTTP/1.1\r\nHost: gateway.example\r\nContent-Length: 9\r\n\r\nhalf');
    await received;

    await within(5_000, 'the listener to close', listener.close());

    assert.equal((await client.answer()).status, 408);
    assert.deepEqual(refusals, []);
  });
});
