/** Eight operations and no more: every other method on every shape is refused, and the bank never hears of it. */

import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw.ts';
import { assertRefused } from '../kit/refusal.ts';

const prefix = '/berlingroup/v1';
const product = 'sepa-credit-transfers';

/** Every shape there is, written out, with the methods that the standard gives it. */
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

/** CONNECT names a host instead of a path; it has a test of its own. */
const methods = METHODS.filter((method) => method !== 'CONNECT');

describe('a method that a path is not offered for gets 405, with those that it is:', () => {
  for (const [path, allowed] of Object.entries(shapes)) {
    test(`${path} takes ${allowed.join(' and ')} alone`, async (t) => {
      const { bank, gateway } = await startLine(t);
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

  test('PUT on an authorisation is told that embedded SCA is not to be had here', async (t) => {
    const { gateway } = await startLine(t);
    const path = `${prefix}/payments/${product}/1/authorisations/2`;
    const { text } = await call(gateway.url, { method: 'PUT', path, body: '{}' });
    assert.match(text, /embedded SCA/);
  });

  test('HEAD is told so although the body that it announces has not come', async (t) => {
    const { gateway } = await startLine(t);
    const said = await onConnection(gateway.port, async (connection) => {
      connection.send(`HEAD ${prefix}/payments/${product} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n`);
      await connection.closed();
      return connection.unread();
    });
    assert.match(said, /^HTTP\/1\.1 405 .*\r\nAllow: POST\r\n.*\r\n\r\n$/s);
  });
});

describe('what is no request for a path at all', () => {
  test('CONNECT opens no tunnel', async (t) => {
    const { bank, gateway } = await startLine(t);
    const target = new URL(bank.baseUrl).host;
    const answer = await sendRaw(gateway.port, `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('penstock-error'), 'METHOD_NOT_ALLOWED');
    assert.equal(answer.headers.get('allow'), '');
    assert.equal(bank.connections, 0);
  });

  test('a method that HTTP does not know is no HTTP', async (t) => {
    const { bank, gateway } = await startLine(t);
    const path = `${prefix}/payments/${product}`;
    const answer = await sendRaw(gateway.port, `PAY ${path} HTTP/1.1\r\nHost: gateway.example\r\n\r\n`);
    assert.equal(answer.status, 400);
    assert.equal(answer.headers.get('penstock-error'), 'HEADER_MALFORMED');
    assert.equal(bank.connections, 0);
  });
});
