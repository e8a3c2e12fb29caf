import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation, statusRead, valuesAtBank } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';

/*
 * Attack: a proxy removes the fields that Connection names. The attacker names the signature or the X-Request-ID, so that
 * the bank gets the request without what the gateway validated.
 */
describe('fields named by Connection', () => {
  test('C2: lead to a 400 if they are important, in any spelling', async (t) => {
    const line = await startGatewayWithBank(t);
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
    const inSecondField = statusRead(
      'Connection: keep-alive',
      'Connection: Authorization',
      'Authorization: Bearer t',
    );
    await assertCutOff(line, inSecondField, [400, 'HEADER_MALFORMED']);
    await assertServes(line);
  });

  test('C2: are removed otherwise, together with all hop-by-hop fields', async (t) => {
    const line = await startGatewayWithBank(t);
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

  test('do not close the connection to the bank if the TPP sends Connection: close', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    for (const _ of [1, 2, 3]) await sendRaw(gateway.port, statusRead('Connection: close'));
    const options = bank.requests.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf('Connection') + 1]);
    assert.deepEqual(options, ['keep-alive', 'keep-alive', 'keep-alive']);
  });
});

/*
 * Attack: a proxy that accepts an Upgrade stops parsing requests and forwards bytes, so that everything behind reaches the
 * bank unchecked.
 */
describe('a request with Upgrade', () => {
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
    test(`C8: to ${name} gets a normal response, and nothing behind it is parsed`, async (t) => {
      const line = await startGatewayWithBank(t);
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

    test(`C8: to ${name} in a payment is sent to the bank with its body and without Upgrade`, async (t) => {
      const line = await startGatewayWithBank(t);
      const bytes = initiation('{}', 'Content-Length: 2', ...fields);
      assert.equal((await sendRaw(line.gateway.port, bytes)).status, 201);
      assert.equal(line.bank.requests.at(-1)?.body.toString(), '{}');
      assert.deepEqual(valuesAtBank(line, 'upgrade'), []);
    });
  }

  test('C8: ends the connection even if the next request begins in the same packet', async (t) => {
    const line = await startGatewayWithBank(t);
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
