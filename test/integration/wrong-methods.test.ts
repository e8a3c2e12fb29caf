/** Every method that is not one of the eight operations is refused, and the bank receives nothing. */

import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';
import { assertRefused } from '../kit/refusal.ts';

const prefix = '/berlingroup/v1';
const product = 'sepa-credit-transfers';

/** All path shapes with their methods, independent of the operations table. */
const shapes: Readonly<Record<string, readonly string[]>> = {
  [`${prefix}/payments/${product}`]: ['POST'],
  [`${prefix}/bulk-payments/${product}`]: ['POST'],
  [`${prefix}/periodic-payments/${product}`]: ['POST'],
  [`${prefix}/payments/${product}/1`]: ['GET', 'DELETE'],
  [`${prefix}/bulk-payments/${product}/1`]: ['DELETE'],
  [`${prefix}/periodic-payments/${product}/1`]: ['GET', 'DELETE'],
  ...Object.fromEntries(
    ['payments', 'bulk-payments', 'periodic-payments'].flatMap((service) => [
      [`${prefix}/${service}/${product}/1/status`, ['GET']],
      [`${prefix}/${service}/${product}/1/authorisations`, ['POST', 'GET']],
      [`${prefix}/${service}/${product}/1/cancellation-authorisations`, ['POST', 'GET']],
      [`${prefix}/${service}/${product}/1/authorisations/2`, ['GET']],
      [`${prefix}/${service}/${product}/1/cancellation-authorisations/2`, ['GET']],
    ]),
  ),
};

/** Paths that lack the id or the product: an id never equals the name of a sub-resource. */
const incompletePaths = ['status', 'authorisations', 'cancellation-authorisations'].flatMap((name) => [
  `${prefix}/payments/${product}/${name}`,
  `${prefix}/periodic-payments/${product}/${name}`,
  `${prefix}/payments/${product}/${name}/status`,
  `${prefix}/payments/${product}/1/authorisations/${name}`,
]);

describe('a request with the name of a sub-resource in place of an id', () => {
  for (const path of incompletePaths) {
    test(`gets 404 on ${path}, and the bank receives nothing`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      for (const method of ['GET', 'DELETE', 'POST', 'PUT'])
        assertRefused(await call(gateway.url, { method, path }), 404, 'PATH_UNKNOWN', 'RESOURCE_UNKNOWN');
      assert.equal(bank.requests.length, 0);
    });
  }
});

/** CONNECT has an authority instead of a path, and a separate test. */
const methods = METHODS.filter((method) => method !== 'CONNECT');

describe('a request with a wrong method', () => {
  for (const [path, allowed] of Object.entries(shapes)) {
    test(`gets 405 with Allow for every method except ${allowed.join(' and ')} on ${path}`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      for (const method of methods.filter((one) => !allowed.includes(one))) {
        const reply = await call(gateway.url, { method, path });
        assert.deepEqual(reply.header('Allow')?.split(', ').toSorted(), allowed.toSorted(), method);
        if (method === 'HEAD') assert.deepEqual([reply.status, reply.body.length], [405, 0]);
        else assertRefused(reply, 405, 'METHOD_NOT_ALLOWED', 'SERVICE_INVALID');
      }
      assert.equal(bank.requests.length, 0);
      assert.equal(bank.connections, 0);

      for (const method of allowed) await call(gateway.url, { method, path });
      assert.deepEqual(
        bank.requests.map(({ method }) => method),
        allowed,
      );
    });
  }

  test('gets 405 for PUT on an authorisation, and learns which setting offers it', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const path = `${prefix}/payments/${product}/1/authorisations/2`;
    const { text } = await call(gateway.url, { method: 'PUT', path, body: '{}' });
    assert.match(text, /with the setting standard\.alsoOffer: updatePsuData/);
  });

  test('gets 405 for HEAD although its announced body is missing', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const received = await onConnection(gateway.port, async (connection) => {
      connection.send(`HEAD ${prefix}/payments/${product} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n`);
      await connection.closed();
      return connection.unread();
    });
    assert.match(received, /^HTTP\/1\.1 405 .*\r\nAllow: POST\r\n.*\r\n\r\n$/s);
  });
});

describe('a request without a path of the API', () => {
  test('gets 405 for CONNECT, and no tunnel is opened', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const target = new URL(bank.baseUrl).host;
    const response = await sendRaw(gateway.port, `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    assert.equal(response.status, 405);
    assert.equal(response.headers.get('penstock-error'), 'METHOD_NOT_ALLOWED');
    assert.equal(response.headers.get('allow'), '');
    assert.equal(bank.connections, 0);
  });

  test('gets 400 for a method that HTTP does not define', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const path = `${prefix}/payments/${product}`;
    const response = await sendRaw(gateway.port, `PAY ${path} HTTP/1.1\r\nHost: gateway.example\r\n\r\n`);
    assert.equal(response.status, 400);
    assert.equal(response.headers.get('penstock-error'), 'HEADER_MALFORMED');
    assert.equal(bank.connections, 0);
  });
});
