/** The bank on the network: what it writes down, where it says it is, and that it can come and go. */
import assert from 'node:assert/strict';
import { Agent, request as httpsRequest } from 'node:https';
import { describe, test } from 'node:test';
import { createSimulatedBank } from '../../../src/simulated-bank/server.ts';
import { certificate, key } from './certificate.ts';
import { ask, jsonOrder, pathOf, pay, requestId, startedBank } from './kit.ts';
import { initiationBytes, talk } from './raw.ts';

describe('the request log of the simulated bank', () => {
  test('contains request line, header and body exactly as received', async (t) => {
    const bank = await startedBank(t);

    await talk(bank, initiationBytes, /}}}$/);

    const [request] = bank.requests;
    assert.equal(request?.method, 'POST');
    assert.equal(request.url, '/berlingroup/v1/payments/sepa-credit-transfers');
    assert.equal(request.httpVersion, '1.1');
    assert.deepEqual(request.rawHeaders.slice(0, 4), ['Host', 'bank', 'X-Request-ID', requestId]);
    assert.equal(request.operation, 'initiatePayment');
    assert.equal(request.body.toString(), jsonOrder);
    assert.equal(request.bodyComplete, true);
  });

  test('contains a request whose body never ended, and which is not executed', async (t) => {
    const bank = await startedBank(t);

    const talking = talk(bank, initiationBytes.slice(0, -5));
    await bank.waitUntil(() => (bank.requests[0]?.body.length ?? 0) > 0);
    await bank.stop();
    await talking;

    assert.equal(bank.requests[0]?.bodyComplete, false);
    assert.equal(bank.payments.length, 0);
  });

  test('names the connection of each request', async (t) => {
    const bank = await startedBank(t);

    await talk(bank, initiationBytes + initiationBytes, /}}}.*}}}$/s);
    await pay(bank);

    assert.deepEqual(
      bank.requests.map(({ connection }) => connection),
      [1, 1, 2],
    );
    assert.equal(bank.connections, 2);
  });

  test('counts malformed HTTP separately', async (t) => {
    const bank = await startedBank(t);

    await talk(bank, 'POST / HTTP/1.1\r\nHost: bank\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n');

    assert.equal(bank.malformed, 1);
    assert.equal(bank.requests.length, 0);
  });

  test('is empty after a reset of the bank', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'status' });
    await pay(bank);

    bank.reset();

    assert.deepEqual([bank.requests, bank.payments, bank.faults], [[], [], []]);
  });
});

describe('links of the simulated bank', () => {
  const selfOf = async (t: Parameters<typeof startedBank>[0], options: Parameters<typeof startedBank>[1]) => {
    const bank = await startedBank(t, { basePath: '/xs2a', segment: 'berlin/1.3', ...options });
    bank.nextPaymentId('p-1');
    const { origin } = new URL(bank.baseUrl);
    const path = '/xs2a/berlin/1.3/v1/payments/sepa-credit-transfers';
    const headers = { 'PSU-IP-Address': '::1' };
    const { json, headers: answered } = await ask(bank, 'POST', path, { headers, body: jsonOrder });
    assert.equal(answered.location, json._links.self.href);
    return json._links.self.href.replace(origin, 'ORIGIN');
  };

  test('are absolute by default', async (t) => {
    const href = await selfOf(t, {});

    assert.equal(href, 'ORIGIN/xs2a/berlin/1.3/v1/payments/sepa-credit-transfers/p-1');
  });

  test('can name an origin other than the one the bank listens on', async (t) => {
    const href = await selfOf(t, { publicOrigin: 'https://bank.example' });

    assert.equal(href, 'https://bank.example/xs2a/berlin/1.3/v1/payments/sepa-credit-transfers/p-1');
  });

  test('can be relative, with and without the path before the version', async (t) => {
    assert.equal(
      await selfOf(t, { links: 'relative' }),
      '/xs2a/berlin/1.3/v1/payments/sepa-credit-transfers/p-1',
    );
    assert.equal(
      await selfOf(t, { links: 'relative-without-base' }),
      '/v1/payments/sepa-credit-transfers/p-1',
    );
  });
});

describe('the server of the simulated bank', () => {
  test('restarts on the same port with its payments', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    const port = Number(new URL(bank.baseUrl).port);

    await bank.stop();
    await assert.rejects(pay(bank), { code: 'ECONNREFUSED' });
    await bank.start(port);

    assert.equal((await ask(bank, 'GET', pathOf(json.paymentId))).status, 200);
  });

  test('can be stopped twice, but not started twice', async (t) => {
    const bank = await startedBank(t);

    await assert.rejects(bank.start(), /listening on http/);
    await bank.stop();
    await bank.stop();
  });

  test('has no address before it is started', () => {
    assert.throws(() => createSimulatedBank().baseUrl, /has not been started/);
  });

  test('reports the condition of an expired wait', async (t) => {
    const bank = await startedBank(t);

    await assert.rejects(
      bank.waitUntil(() => bank.payments.length === 1, 1),
      /within 1 ms: .*payments\.length === 1/,
    );
  });

  test('serves TLS, and can reset TLS connections', async (t) => {
    const bank = await startedBank(t, { tls: { key, cert: certificate } });
    bank.injectFault({ name: 'status', status: 418 }, { times: 1 });
    bank.injectFault({ name: 'reset' }, { times: 1 });
    const agent = new Agent({ ca: certificate });
    t.after(() => agent.destroy());
    const visit = () => {
      const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
      httpsRequest(bank.baseUrl, { agent }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
      return promise;
    };

    assert.match(bank.baseUrl, /^https:/);
    assert.equal(await visit(), 418);
    await assert.rejects(visit(), { code: 'ECONNRESET' });
  });
});
