import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertServes, initiation, refusalOf, statusRead } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';

const body = '{"transactionStatus":"RCVD"}';
const length = `Content-Length: ${body.length}`;

/** The bytes of a response with exactly these lines. */
const responseText = (first: string, ...fields: readonly string[]) =>
  `${[first, 'Content-Type: application/json', ...fields].join('\r\n')}\r\n\r\n${body}`;

/*
 * Attack: the bank's server is broken or under the attacker's control. Its response has two interpretations, so that the
 * next TPP gets bytes that belong to another response.
 */
describe('an ambiguous response of the bank', { concurrency: 8 }, () => {
  const malformed: Readonly<Record<string, string>> = {
    'a bare CR in a value': responseText('HTTP/1.1 200 OK', 'X-A: b\rX-Injected: c', length),
    'a bare LF in a value': responseText('HTTP/1.1 200 OK', 'X-A: b\nX-Injected: c', length),
    'a NUL in a value': responseText('HTTP/1.1 200 OK', 'X-A: b\0c', length),
    'a control character in a value': responseText('HTTP/1.1 200 OK', 'X-A: b\x01c', length),
    'a folded line': responseText('HTTP/1.1 200 OK', 'X-A: b\r\n c', length),
    'a space before the colon': responseText('HTTP/1.1 200 OK', 'X-A : b', length),
    'two lengths': responseText('HTTP/1.1 200 OK', length, 'Content-Length: 5'),
    'a length and a coding': responseText('HTTP/1.1 200 OK', length, 'Transfer-Encoding: chunked'),
    'a length with a sign': responseText('HTTP/1.1 200 OK', 'Content-Length: +28'),
    'a head of 40 KB': responseText('HTTP/1.1 200 OK', `X-A: ${'a'.repeat(40_000)}`, length),
    'no status': responseText('HTTP/1.1 OK', length),
    'another protocol': responseText('HTTP/2.5 200 OK', length),
    'no head at all': body,
  };
  for (const [name, bytes] of Object.entries(malformed)) {
    test(`C6: with ${name} leads to a 502, and nothing of it reaches the TPP`, async (t) => {
      const line = await startGatewayWithBank(t);
      line.bank.injectFault({ name: 'garbage', bytes }, { times: 1 });
      const response = await sendRaw(line.gateway.port, initiation('{}', 'Content-Length: 2'));
      assert.deepEqual(refusalOf(response), [502, 'UPSTREAM_MALFORMED']);
      assert.equal(response.headers.get('x-injected'), undefined);
      assert.doesNotMatch(response.body, /RCVD/);
      assert.equal(line.bank.requests.length, 1, 'the payment was sent again');
      await assertServes(line);
    });
  }
});

/*
 * Attack: the gateway removes Transfer-Encoding and passes on bytes that are still encoded. TPPs parse what they take for JSON.
 */
describe('a response of the bank with another transfer coding than chunked', { concurrency: 8 }, () => {
  const chunked = `1c\r\n${body}\r\n0\r\n\r\n`;
  const withCoding = (...fields: readonly string[]) =>
    responseText('HTTP/1.1 201 Created', ...fields).replace(body, chunked);
  const refused: Readonly<Record<string, readonly string[]>> = {
    'gzip, chunked': ['Transfer-Encoding: gzip, chunked'],
    'deflate, chunked': ['Transfer-Encoding: deflate, chunked'],
    'identity, chunked': ['Transfer-Encoding: identity, chunked'],
    'gzip and chunked in two fields': ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'],
    'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
    'chunked with a parameter': ['Transfer-Encoding: chunked;q=1'],
    'gzip alone': ['Transfer-Encoding: gzip', 'Connection: close'],
    identity: ['Transfer-Encoding: identity', 'Connection: close'],
    nothing: ['Transfer-Encoding:', 'Connection: close'],
  };
  for (const [name, fields] of Object.entries(refused)) {
    test(`C6: leads to a 502 if it is ${name}, and nothing of it reaches the TPP`, async (t) => {
      const line = await startGatewayWithBank(t);
      line.bank.injectFault({ name: 'garbage', bytes: withCoding(...fields) }, { times: 1 });
      const response = await sendRaw(line.gateway.port, initiation('{}', 'Content-Length: 2'));
      assert.deepEqual(refusalOf(response), [502, 'UPSTREAM_MALFORMED']);
      assert.doesNotMatch(response.body, /RCVD/);
      assert.equal(line.bank.requests.length, 1, 'the payment was sent again');
      await assertServes(line);
    });
  }

  for (const coding of ['chunked', 'Chunked', 'CHUNKED']) {
    test(`is accepted if it is ${coding}: names of codings are case-insensitive`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      bank.injectFault({ name: 'garbage', bytes: withCoding(`Transfer-Encoding: ${coding}`) });
      const response = await sendRaw(gateway.port, initiation('{}', 'Content-Length: 2'));
      assert.deepEqual([response.status, response.body], [201, body]);
      assert.equal(response.headers.get('transfer-encoding'), undefined);
    });
  }
});

/*
 * Attack: hop-by-hop fields that are forwarded change the state of the next connection. A bank that sends the fields of the
 * gateway makes TPPs assume that the gateway refused a payment and never sent it.
 */
describe('fields of a response of the bank', () => {
  test('C11: are removed if they are hop-by-hop or named by Connection', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const hop = [
      'Connection: X-Internal, close',
      'X-Internal: secret',
      'Keep-Alive: timeout=999',
      'TE: trailers',
    ];
    const more = ['Proxy-Authenticate: Basic', 'Proxy-Connection: close', 'Upgrade: h2c', 'Trailer: X-A'];
    bank.injectFault({
      name: 'garbage',
      bytes: responseText('HTTP/1.1 200 OK', ...hop, ...more, 'X-Kept: yes', length),
    });
    const { status, headers, body: text } = await sendRaw(gateway.port, statusRead());
    assert.deepEqual([status, text], [200, body]);
    assert.equal(headers.get('x-kept'), 'yes');
    assert.equal(headers.get('connection'), 'keep-alive');
    assert.notEqual(headers.get('keep-alive'), 'timeout=999');
    for (const name of ['x-internal', 'te', 'proxy-authenticate', 'proxy-connection', 'upgrade', 'trailer']) {
      assert.equal(headers.get(name), undefined, name);
    }
  });

  test('C10: are removed if only the gateway may set them', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const forged = [
      'Penstock-Error: PATH_UNKNOWN',
      'penstock-environment: production',
      'Idempotent-Replayed: true',
    ];
    const bytes = statusRead();
    const id = 'X-Request-ID: 00000000-0000-0000-0000-000000000000';
    bank.injectFault({ name: 'garbage', bytes: responseText('HTTP/1.1 200 OK', ...forged, id, length) });
    const { headers } = await sendRaw(gateway.port, bytes);
    assert.equal(headers.get('penstock-error'), undefined);
    assert.equal(headers.get('idempotent-replayed'), undefined);
    assert.equal(headers.get('penstock-environment'), 'sandbox');
    assert.equal(headers.get('x-request-id'), /X-Request-ID: (\S+)/.exec(bytes)?.[1]);
  });

  test('C6: keep bytes beyond ASCII', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({
      name: 'garbage',
      bytes: responseText('HTTP/1.1 200 Caf\xe9', 'X-A: \xe9\x8d\x8a\xff', length),
    });
    assert.equal((await sendRaw(gateway.port, statusRead())).headers.get('x-a'), '\xe9\x8d\x8a\xff');
  });
});

/*
 * Attack: a second response waits on the connection and becomes the response to the next TPP. A response of another kind
 * makes the gateway wait without end.
 */
describe('unsolicited responses of the bank', () => {
  test('C6, E13: a second response is never delivered to a TPP', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'two-answers' }, { times: 3 });
    await onConnection(gateway.port, async (connection) => {
      for (const _ of [1, 2, 3, 4]) {
        connection.send(initiation('{}', 'Content-Length: 2'));
        const response = await connection.answer();
        assert.equal(response.status, 201);
        assert.doesNotMatch(response.body, /ACCC/);
      }
    });
    assert.equal(bank.payments.length, 4);
  });

  test('E11: interim responses are skipped, and the final one is delivered', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'interim-answers', statuses: [100, 102, 103, 199] });
    await onConnection(gateway.port, async (connection) => {
      connection.send(initiation('{}', 'Content-Length: 2', 'Connection: close'));
      await connection.closed();
      assert.match(connection.unread(), /^HTTP\/1\.1 201 /);
    });
  });

  test('E11: 101 Switching Protocols leads to a 502 without a wait', async (t) => {
    const line = await startGatewayWithBank(t);
    line.bank.injectFault({ name: 'switching-protocols' }, { times: 1 });
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
    const response = await sendRaw(line.gateway.port, initiation('{}', 'Content-Length: 2', ...upgrade));
    assert.deepEqual(refusalOf(response), [502, 'UPSTREAM_MALFORMED']);
    assert.equal(line.bank.requests.length, 1);
    await assertServes(line);
  });
});
