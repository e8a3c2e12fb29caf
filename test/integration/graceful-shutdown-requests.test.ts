/** A gateway that is told to stop ends what it has begun, and nobody can keep it from stopping. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { createGateway } from '../../src/gateway.ts';
import { closeServer, openServer } from '../../src/http/server-lifecycle.ts';
import { configOf, startBank } from '../kit/gateway.ts';
import { isOpen } from '../kit/ports.ts';
import { connectRaw } from '../kit/raw.ts';
import { statusRead } from '../kit/request.ts';
import { within } from '../kit/within.ts';

const silent = () => {};

const configFor = (baseUrl: string) =>
  configOf({ listen: { port: 0 }, admin: { port: 0 }, environments: { sandbox: { baseUrl } } });

describe('a gateway that stops (H1)', () => {
  test('closes both doors', async (t) => {
    const gateway = createGateway(configFor('https://bank.example'), silent);
    const { tppPort, adminPort } = await gateway.start();
    t.after(() => gateway.stop());
    assert.deepEqual([await isOpen(tppPort), await isOpen(adminPort)], [true, true]);
    await within(5_000, 'the gateway to stop', gateway.stop());
    assert.deepEqual([await isOpen(tppPort), await isOpen(adminPort)], [false, false]);
  });

  test('waits for a request on its way, which gets its answer, and for no connection without one', async (t) => {
    const bank = await startBank(t);
    const gateway = createGateway(configFor(bank.baseUrl), silent);
    const { tppPort } = await gateway.start();
    const idle = await connectRaw(tppPort);
    const kept = await connectRaw(tppPort);
    t.after(idle.destroy);
    t.after(kept.destroy);
    bank.injectFault({ name: 'latency', ms: 300 });
    kept.send(
      `GET ${statusRead.path} HTTP/1.1\r\nHost: a\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\n\r\n`,
    );
    await bank.waitUntil(() => bank.requests.length === 1);

    const stopped = gateway.stop();

    assert.equal((await kept.answer()).status, 404);
    await within(5_000, 'the gateway to stop', stopped);
    await Promise.all([idle.closed(), kept.closed()]);
  });

  test('goes on with its time-outs: who stopped in the middle of a request is not waited for for ever', async (t) => {
    const server = createServer({ headersTimeout: 100, connectionsCheckingInterval: 20 });
    const half = await connectRaw(await openServer(server, '127.0.0.1', 0));
    t.after(half.destroy);
    half.send('GET / HTTP/1.1\r\nHost: gateway.example');
    await within(5_000, 'the server to close', closeServer(server));
    await half.closed();
  });
});
