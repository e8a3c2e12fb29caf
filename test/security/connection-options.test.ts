import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation, statusRead, valuesAtBank } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw.ts';

/*
 * The story: what Connection names is meant for the next hop only, and a proxy takes it off. The attacker names the
 * signature or the request's id, so that the bank gets the request without what the gateway checked or vouched for.
 */
describe('fields named by Connection', () => {
  test('C2: one that matters is refused, however it is written', async (t) => {
    const line = await startLine(t);
    const names = [
      'X-Request-ID',
      'Authorization',
      'Digest',
      'Signature',
      'Content-Type',
      'PSU-IP-Address',
      'Host',
    ];
    const more = ['Content-Length', 'Transfer-Encoding', 'TPP-Signature-Certificate', 'TPP-Redirect-URI'];
    const forms = (name: string) => [
      name,
      name.toUpperCase(),
      `close, ${name}`,
      `${name} , keep-alive`,
      `,\t${name},`,
    ];
    for (const option of [...names.flatMap(forms), ...more]) {
      await assertCutOff(line, statusRead(`Connection: ${option}`), [400, 'HEADER_MALFORMED']);
    }
    const inTheSecond = statusRead(
      'Connection: keep-alive',
      'Connection: Authorization',
      'Authorization: Bearer t',
    );
    await assertCutOff(line, inTheSecond, [400, 'HEADER_MALFORMED']);
    await assertServes(line);
  });

  test('C2: any other is taken off, with all that belongs to one connection', async (t) => {
    const line = await startLine(t);
    const hop = [
      'Keep-Alive: timeout=5',
      'TE: trailers',
      'Proxy-Connection: keep-alive',
      'HTTP2-Settings: AAMAAABk',
    ];
    const secret = ['Proxy-Authorization: Basic c2VjcmV0', 'Trailer: X-A', 'X-Private: 1', 'x-PRIVATE: 2'];
    await sendRaw(
      line.gateway.port,
      statusRead('Connection: X-Private, keep-alive', 'X-Other: 3', ...hop, ...secret),
    );
    for (const name of [...hop, ...secret].map((field) => field.slice(0, field.indexOf(':')).toLowerCase())) {
      assert.deepEqual(valuesAtBank(line, name), [], name);
    }
    assert.deepEqual(valuesAtBank(line, 'x-other'), ['3']);
  });

  test('a TPP’s own wish to close is no wish about the bank’s connections', async (t) => {
    const { bank, gateway } = await startLine(t);
    for (const _ of [1, 2, 3]) await sendRaw(gateway.port, statusRead('Connection: close'));
    const wishes = bank.requests.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf('Connection') + 1]);
    assert.deepEqual(wishes, ['keep-alive', 'keep-alive', 'keep-alive']);
  });
});

/*
 * The story: a proxy that believes in an Upgrade stops reading requests and passes bytes: everything behind goes to the
 * bank unchecked.
 */
describe('a wish to change the protocol', () => {
  const upgrades: Readonly<Record<string, readonly string[]>> = {
    WebSocket: [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: YQ==',
    ],
    'HTTP/2': ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
    TLS: ['Connection: upgrade', 'Upgrade: TLS/1.2'],
    'an unknown protocol': ['Connection: upgrade', 'Upgrade: tunnel/1'],
  };
  for (const [name, fields] of Object.entries(upgrades)) {
    test(`C8: to ${name} gets an ordinary answer, and nothing behind it is taken for anything`, async (t) => {
      const line = await startLine(t);
      const hidden = initiation('{}', 'Content-Length: 2');
      const behind = initiation('', `Content-Length: ${hidden.length}`);
      await onConnection(line.gateway.port, async (connection) => {
        connection.send(statusRead(...fields) + behind);
        const { status, headers } = await connection.answer();
        assert.deepEqual([status, headers.get('connection')], [404, 'close']);
        connection.send(hidden);
        await connection.closed();
        assert.equal(connection.unread(), '');
      });
      assert.equal(line.bank.requests.length, 1);
      for (const field of ['upgrade', 'http2-settings']) assert.deepEqual(valuesAtBank(line, field), []);
    });

    test(`C8: to ${name} in a payment is no hindrance to its body`, async (t) => {
      const line = await startLine(t);
      const bytes = initiation('{}', 'Content-Length: 2', ...fields);
      assert.equal((await sendRaw(line.gateway.port, bytes)).status, 201);
      assert.equal(line.bank.requests.at(-1)?.body.toString(), '{}');
      assert.deepEqual(valuesAtBank(line, 'upgrade'), []);
    });
  }

  test('C8: is heard in the first request of many sent at once, whatever packet the next one begins in', async (t) => {
    const line = await startLine(t);
    const smuggled = initiation('{}', 'Content-Length: 2');
    await onConnection(line.gateway.port, async (connection) => {
      line.bank.injectFault({ name: 'latency', ms: 100, strikes: 'before-effect' }, { times: 1 });
      connection.send(
        statusRead('Connection: Upgrade', 'Upgrade: h2c') + initiation('', 'Content-Length: 999'),
      );
      await line.bank.waitUntil(() => line.bank.requests.length === 1);
      connection.send(smuggled);
      await connection.closed();
    });
    assert.equal(line.bank.requests.length, 1);
    await assertServes(line);
  });
});
