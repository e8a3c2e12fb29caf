import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertCutOff,
  assertRefused,
  assertServes,
  newStatusPath,
  paymentsPath,
  requestText,
  statusRead,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';

/*
 * Attack: for a complete URL in the request line, one program uses the path and another one the host. The attacker makes
 * the gateway check a harmless path and send the request, with its tokens, to another host.
 */
describe('a request target that is not a path', () => {
  test('A9: is refused if it is a URL, and its host is never used', async (t) => {
    const line = await startGatewayWithBank(t);
    const path = newStatusPath();
    const bank = new URL(line.bank.baseUrl).host;
    for (const target of [`http://evil.example${path}`, `https://${bank}${path}`, `http://${bank}${path}`]) {
      await assertRefused(line, requestText(`GET ${target} HTTP/1.1`), [400, 'PATH_MALFORMED']);
    }
    await assertRefused(line, requestText(`GET //evil.example${path} HTTP/1.1`), [400, 'PATH_MALFORMED']);
    await assertServes(line);
  });

  test('A9, A10: is refused if it is an authority, an asterisk, a name or empty', async (t) => {
    const line = await startGatewayWithBank(t);
    await assertRefused(line, requestText('OPTIONS * HTTP/1.1'), [400, 'PATH_MALFORMED']);
    await assertRefused(line, requestText('GET * HTTP/1.1'), [400, 'PATH_MALFORMED']);
    for (const target of ['bank.example:443', 'berlingroup/v1/payments', '?a', '#a', '']) {
      await assertCutOff(line, requestText(`GET ${target} HTTP/1.1`), [400, 'HEADER_MALFORMED']);
    }
  });
});

/*
 * Attack: CONNECT turns a careless proxy into a tunnel to the bank's network; TRACE reveals the secrets of the request to
 * anyone who can read the response; an unusual method bypasses rules for the usual ones.
 */
describe('a request with a method of no operation', () => {
  const known = [
    'HEAD',
    'OPTIONS',
    'TRACE',
    'PUT',
    'PATCH',
    'PROPFIND',
    'PURGE',
    'SEARCH',
    'QUERY',
    'LINK',
    'SOURCE',
  ];

  test('A10: gets 405 with Allow, and nothing of the request is echoed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    for (const method of known.filter((name) => name !== 'HEAD')) {
      const secret = 'Authorization: Bearer secret';
      const response = await sendRaw(
        gateway.port,
        requestText(`${method} ${newStatusPath()} HTTP/1.1`, [secret]),
      );
      assert.equal(response.status, 405, method);
      assert.equal(response.headers.get('allow'), 'GET');
      assert.doesNotMatch(response.body, /secret/);
    }
    assert.equal(bank.requests.length, 0);
  });

  test('A10: gets 405 without a body for HEAD, and the next response is intact', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      connection.send(requestText(`HEAD ${newStatusPath()} HTTP/1.1`) + statusRead('Connection: close'));
      await connection.closed();
      assert.match(connection.unread(), /^HTTP\/1\.1 405 .*?\r\n\r\nHTTP\/1\.1 404 .*?\r\n\r\n\{/s);
    });
  });

  test('A10: gets 400 if HTTP does not define the method', async (t) => {
    const line = await startGatewayWithBank(t);
    for (const method of ['TRACK', 'GETS', 'G', 'Post', 'P\0ST', '%47ET', 'DEBUG']) {
      await assertCutOff(line, requestText(`${method} ${paymentsPath} HTTP/1.1`), [400, 'HEADER_MALFORMED']);
    }
  });

  test('A10: gets 405 for CONNECT, and no tunnel to the bank or to this machine', async (t) => {
    const line = await startGatewayWithBank(t);
    const targets = [new URL(line.bank.baseUrl).host, `127.0.0.1:${new URL(line.gateway.adminUrl).port}`];
    for (const target of [...targets, newStatusPath()]) {
      await assertCutOff(line, requestText(`CONNECT ${target} HTTP/1.1`), [405, 'METHOD_NOT_ALLOWED']);
    }
    assert.equal(line.bank.connections, 0);
    await assertServes(line);
  });
});
