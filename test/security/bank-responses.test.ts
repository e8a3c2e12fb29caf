import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertServes, initiation, refusalOf, statusRead } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw.ts';

const body = '{"transactionStatus":"RCVD"}';
const length = `Content-Length: ${body.length}`;

/** An answer as bytes, exactly these lines. */
const answerText = (first: string, ...fields: readonly string[]) =>
  `${[first, 'Content-Type: application/json', ...fields].join('\r\n')}\r\n\r\n${body}`;

/*
 * The story: somebody sits at the bank's end of the line, or the bank's own front is broken. Its answer can be understood
 * in two ways, so that the next TPP gets what was never meant for it.
 */
describe('an answer that two readers understand differently', { concurrency: true }, () => {
  const malformed: Readonly<Record<string, string>> = {
    'a bare CR in a value': answerText('HTTP/1.1 200 OK', 'X-A: b\rX-Injected: c', length),
    'a bare LF in a value': answerText('HTTP/1.1 200 OK', 'X-A: b\nX-Injected: c', length),
    'a NUL in a value': answerText('HTTP/1.1 200 OK', 'X-A: b\0c', length),
    'a control character in a value': answerText('HTTP/1.1 200 OK', 'X-A: b\x01c', length),
    'a folded line': answerText('HTTP/1.1 200 OK', 'X-A: b\r\n c', length),
    'a space before the colon': answerText('HTTP/1.1 200 OK', 'X-A : b', length),
    'two lengths': answerText('HTTP/1.1 200 OK', length, 'Content-Length: 5'),
    'a length and a coding': answerText('HTTP/1.1 200 OK', length, 'Transfer-Encoding: chunked'),
    'a length with a sign': answerText('HTTP/1.1 200 OK', 'Content-Length: +28'),
    'a head of 40 KB': answerText('HTTP/1.1 200 OK', `X-A: ${'a'.repeat(40_000)}`, length),
    'no status': answerText('HTTP/1.1 OK', length),
    'another protocol': answerText('HTTP/2.5 200 OK', length),
    'no head at all': body,
  };
  for (const [name, bytes] of Object.entries(malformed)) {
    test(`C6: ${name} is a 502, and nothing of it reaches the TPP`, async (t) => {
      const line = await startLine(t);
      line.bank.injectFault({ name: 'garbage', bytes }, { times: 1 });
      const answer = await sendRaw(line.gateway.port, initiation('{}', 'Content-Length: 2'));
      assert.deepEqual(refusalOf(answer), [502, 'UPSTREAM_MALFORMED']);
      assert.equal(answer.headers.get('x-injected'), undefined);
      assert.doesNotMatch(answer.body, /RCVD/);
      assert.equal(line.bank.requests.length, 1, 'a payment is never sent again');
      await assertServes(line);
    });
  }
});

/*
 * The story: fields of one connection that travel on switch the next connection into a state of the bank's choosing; and
 * a bank that uses the gateway's own words makes TPPs believe that a payment was refused here and never sent.
 */
describe('fields in the bank’s answer', () => {
  test('C11: those of one connection, and those it names, are taken off', async (t) => {
    const { bank, gateway } = await startLine(t);
    const hop = [
      'Connection: X-Internal, close',
      'X-Internal: secret',
      'Keep-Alive: timeout=999',
      'TE: trailers',
    ];
    const more = ['Proxy-Authenticate: Basic', 'Proxy-Connection: close', 'Upgrade: h2c', 'Trailer: X-A'];
    bank.injectFault({
      name: 'garbage',
      bytes: answerText('HTTP/1.1 200 OK', ...hop, ...more, 'X-Kept: yes', length),
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

  test('C10: the bank cannot speak in the gateway’s name', async (t) => {
    const { bank, gateway } = await startLine(t);
    const forged = [
      'Penstock-Error: PATH_UNKNOWN',
      'penstock-environment: production',
      'Idempotent-Replayed: true',
    ];
    const bytes = statusRead();
    const id = 'X-Request-ID: 00000000-0000-0000-0000-000000000000';
    bank.injectFault({ name: 'garbage', bytes: answerText('HTTP/1.1 200 OK', ...forged, id, length) });
    const { headers } = await sendRaw(gateway.port, bytes);
    assert.equal(headers.get('penstock-error'), undefined);
    assert.equal(headers.get('idempotent-replayed'), undefined);
    assert.equal(headers.get('penstock-environment'), 'sandbox');
    assert.equal(headers.get('x-request-id'), /X-Request-ID: (\S+)/.exec(bytes)?.[1]);
  });

  test('C6: bytes beyond ASCII pass as they are, and split nothing', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({
      name: 'garbage',
      bytes: answerText('HTTP/1.1 200 Caf\xe9', 'X-A: \xe9\x8d\x8a\xff', length),
    });
    assert.equal((await sendRaw(gateway.port, statusRead())).headers.get('x-a'), '\xe9\x8d\x8a\xff');
  });
});

/*
 * The story: a second answer that nobody asked for waits on the connection, and becomes the answer to the next TPP; an
 * answer of another kind makes the gateway wait for ever.
 */
describe('answers that nobody asked for', () => {
  test('C6, E13: a second answer is never given to anybody', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'two-answers' }, { times: 3 });
    await onConnection(gateway.port, async (connection) => {
      for (const _ of [1, 2, 3, 4]) {
        connection.send(initiation('{}', 'Content-Length: 2'));
        const answer = await connection.answer();
        assert.equal(answer.status, 201);
        assert.doesNotMatch(answer.body, /ACCC/);
      }
    });
    assert.equal(bank.payments.length, 4);
  });

  test('E11: interim answers are passed over, and the final one arrives', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'interim-answers', statuses: [100, 102, 103, 199] });
    await onConnection(gateway.port, async (connection) => {
      connection.send(initiation('{}', 'Content-Length: 2', 'Connection: close'));
      await connection.closed();
      assert.match(connection.unread(), /^HTTP\/1\.1 201 /);
    });
  });

  test('E11: a change of protocol is a 502, at once', async (t) => {
    const line = await startLine(t);
    line.bank.injectFault({ name: 'switching-protocols' }, { times: 1 });
    const wish = ['Connection: Upgrade', 'Upgrade: websocket'];
    const answer = await sendRaw(line.gateway.port, initiation('{}', 'Content-Length: 2', ...wish));
    assert.deepEqual(refusalOf(answer), [502, 'UPSTREAM_MALFORMED']);
    assert.equal(line.bank.requests.length, 1);
    await assertServes(line);
  });
});
