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
import { startLine } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw.ts';

/*
 * The story: a whole URL in the request line routes by its path here and by its host elsewhere. The attacker has the
 * gateway check a harmless path and send the request, with its tokens, to another host.
 */
describe('a request target that is not a path', () => {
  test('A9: a URL is refused, and the host in it never matters', async (t) => {
    const line = await startLine(t);
    const path = newStatusPath();
    const bank = new URL(line.bank.baseUrl).host;
    for (const target of [`http://evil.example${path}`, `https://${bank}${path}`, `http://${bank}${path}`]) {
      await assertRefused(line, requestText(`GET ${target} HTTP/1.1`), [400, 'PATH_MALFORMED']);
    }
    await assertRefused(line, requestText(`GET //evil.example${path} HTTP/1.1`), [400, 'PATH_MALFORMED']);
    await assertServes(line);
  });

  test('A9, A10: a host and port, an asterisk, a name, or nothing is refused', async (t) => {
    const line = await startLine(t);
    await assertRefused(line, requestText('OPTIONS * HTTP/1.1'), [400, 'PATH_MALFORMED']);
    await assertRefused(line, requestText('GET * HTTP/1.1'), [400, 'PATH_MALFORMED']);
    for (const target of ['bank.example:443', 'berlingroup/v1/payments', '?a', '#a', '']) {
      await assertCutOff(line, requestText(`GET ${target} HTTP/1.1`), [400, 'HEADER_MALFORMED']);
    }
  });
});

/*
 * The story: CONNECT turns a careless proxy into a tunnel into the bank's network; TRACE shows the caller's secrets to
 * whoever reads the answer; a method that nobody thought of slips past rules that only name three.
 */
describe('a method of no operation', () => {
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

  test('A10: is told which ones there are, and shows nothing of the request', async (t) => {
    const { bank, gateway } = await startLine(t);
    for (const method of known.filter((name) => name !== 'HEAD')) {
      const secret = 'Authorization: Bearer secret';
      const answer = await sendRaw(
        gateway.port,
        requestText(`${method} ${newStatusPath()} HTTP/1.1`, [secret]),
      );
      assert.equal(answer.status, 405, method);
      assert.equal(answer.headers.get('allow'), 'GET');
      assert.doesNotMatch(answer.body, /secret/);
    }
    assert.equal(bank.requests.length, 0);
  });

  test('A10: HEAD is told so without a body, and the next answer stands where it should', async (t) => {
    const { gateway } = await startLine(t);
    await onConnection(gateway.port, async (connection) => {
      connection.send(requestText(`HEAD ${newStatusPath()} HTTP/1.1`) + statusRead('Connection: close'));
      await connection.closed();
      assert.match(connection.unread(), /^HTTP\/1\.1 405 .*?\r\n\r\nHTTP\/1\.1 404 .*?\r\n\r\n\{/s);
    });
  });

  test('A10: one that does not exist is no HTTP', async (t) => {
    const line = await startLine(t);
    for (const method of ['TRACK', 'GETS', 'G', 'Post', 'P\0ST', '%47ET', 'DEBUG']) {
      await assertCutOff(line, requestText(`${method} ${paymentsPath} HTTP/1.1`), [400, 'HEADER_MALFORMED']);
    }
  });

  test('A10: CONNECT opens no tunnel, neither to the bank nor to this machine', async (t) => {
    const line = await startLine(t);
    const targets = [new URL(line.bank.baseUrl).host, `127.0.0.1:${new URL(line.gateway.adminUrl).port}`];
    for (const target of [...targets, newStatusPath()]) {
      await assertCutOff(line, requestText(`CONNECT ${target} HTTP/1.1`), [405, 'METHOD_NOT_ALLOWED']);
    }
    assert.equal(line.bank.connections, 0);
    await assertServes(line);
  });
});
