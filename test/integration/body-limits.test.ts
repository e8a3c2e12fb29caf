/** A body that is too large is refused as early as possible, and the TPP can read the refusal. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, statusRead, transfersPath } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until, within } from '../kit/within.ts';

const maxBody = 64 * 1024;
const sections = { listen: { maxBody: '64KiB' } };

const head = (...more: readonly string[]) =>
  [
    `POST ${transfersPath} HTTP/1.1`,
    'Host: gateway.example',
    `X-Request-ID: ${randomUUID()}`,
    'PSU-IP-Address: 192.168.8.78',
    'Content-Type: application/json',
    ...more,
    '\r\n',
  ].join('\r\n');

describe('a body at the limit', () => {
  test('is accepted, and refused with one byte more', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    const fits = initiation.body.padEnd(maxBody, ' ');
    assertRefused(
      await call(gateway.url, { ...initiation, body: `${fits} ` }),
      ...([413, 'BODY_TOO_LARGE', 'FORMAT_ERROR'] as const),
    );
    assert.equal(bank.connections, 0);

    assert.equal((await call(gateway.url, { ...initiation, body: fits })).status, 201);
    assert.equal(bank.requests[0]?.body.length, maxBody);
  });

  test('is measured without the framing of its chunks', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    await onConnection(gateway.port, async (connection) => {
      const fits = initiation.body.padEnd(maxBody, ' ');
      const chunks = fits.match(/.{64}/gs)?.map((chunk) => `40\r\n${chunk}\r\n`) ?? [];

      connection.send(`${head('Transfer-Encoding: chunked')}${chunks.join('')}0\r\n\r\n`);
      assert.equal((await connection.answer()).status, 201);

      connection.send(`${head('Transfer-Encoding: chunked')}${chunks.join('')}1\r\n \r\n0\r\n\r\n`);
      const refusal = await connection.answer();
      assert.deepEqual([refusal.status, refusal.headers.get('penstock-error')], [413, 'BODY_TOO_LARGE']);
      assert.equal(bank.requests.length, 1);
    });
  });
});

describe('a body that far exceeds the limit', () => {
  test('is refused with a response that a TPP can read after it has sent all of the body', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    const socket = connect(gateway.port, '127.0.0.1').setEncoding('latin1').pause();
    t.after(() => socket.destroy());
    const body = Buffer.alloc(8 * 1024 * 1024, ' ');

    const sent = new Promise<unknown>((resolve) => {
      socket.once('error', resolve).write(head(`Content-Length: ${body.length}`));
      socket.write(body, resolve);
    });
    assert.ifError(await within(10_000, 'the TPP to send the body', sent));
    const response = await within(10_000, 'the response', once(socket.resume(), 'data'));

    assert.match(String(response[0]), /^HTTP\/1\.1 413 [\s\S]*BODY_TOO_LARGE/);
    assert.equal(bank.connections, 0);
  });

  test('is refused when it is announced, before any of it is received', async (t) => {
    const { gateway } = await startGatewayWithBank(t, sections);
    await onConnection(gateway.port, async (connection) => {
      connection.send(head('Content-Length: 99999999'));
      const response = await connection.answer();
      assert.equal(response.status, 413);
      assert.equal(response.headers.get('connection'), 'close');
      await connection.closed();
    });
  });

  test('is refused between its chunks, and then the connection closes', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    await onConnection(gateway.port, async (connection) => {
      connection.send(head('Transfer-Encoding: chunked'));
      for (let sent = 0; sent <= maxBody; sent += 1_024) connection.send(`400\r\n${' '.repeat(1_024)}\r\n`);
      assert.equal((await connection.answer()).status, 413);
      await connection.closed();
      assert.equal(bank.connections, 0);
    });
  });

  test('is refused instead of 100 Continue', async (t) => {
    const { gateway } = await startGatewayWithBank(t, sections);
    await onConnection(gateway.port, async (connection) => {
      connection.send(head('Content-Length: 99999999', 'Expect: 100-continue'));
      await until(5_000, 'a response is received', () => connection.unread().includes('\r\n\r\n'));
      assert.match(connection.unread(), /^HTTP\/1\.1 413 /);
    });
  });
});

describe('a body of a request that must not have one', () => {
  for (const method of ['GET', 'DELETE']) {
    for (const framing of ['Content-Length: 2', 'Transfer-Encoding: chunked']) {
      test(`is refused for ${method} with ${framing}`, async (t) => {
        const { bank, gateway } = await startGatewayWithBank(t);
        await onConnection(gateway.port, async (connection) => {
          const path = `${transfersPath}/1${method === 'GET' ? '/status' : ''}`;
          const body = framing.startsWith('C') ? '{}' : '2\r\n{}\r\n0\r\n\r\n';
          connection.send(`${head(framing).replace(`POST ${transfersPath}`, `${method} ${path}`)}${body}`);
          const response = await connection.answer();
          assert.deepEqual(
            [response.status, response.headers.get('penstock-error')],
            [400, 'BODY_UNEXPECTED'],
          );
          assert.equal(bank.connections, 0);
        });
      });
    }
  }

  test('is not present if its length is 0, and the request is accepted', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    assert.equal((await call(gateway.url, { ...statusRead, body: '' })).status, 404);
    assert.equal(bank.requests.length, 1);
  });

  test('is refused if its first byte arrives later, and the connection is closed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    for (const method of ['GET', 'DELETE']) {
      await onConnection(gateway.port, async (connection) => {
        connection.send(chunkedHead(method, 'Expect: 100-continue'));
        await until(5_000, 'the gateway asks for the body', () => connection.unread() === continueResponse);
        connection.send('1\r\n \r\n0\r\n\r\n');
        const response = await connection.answer();
        assert.deepEqual(
          [response.status, response.headers.get('penstock-error'), response.headers.get('connection')],
          [400, 'BODY_UNEXPECTED', 'close'],
        );
        await connection.closed();
      });
    }
    assert.equal(bank.connections, 0);
  });
});

describe('an empty chunked body of a request that must not have one', () => {
  for (const method of ['GET', 'DELETE']) {
    test(`is accepted for ${method}, at once and in parts, on one connection`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      await onConnection(gateway.port, async (connection) => {
        for (const end of ['0\r\n\r\n', '000\r\n\r\n', '0;a=b\r\n\r\n', '0\r\nX-Trailer: 1\r\n\r\n']) {
          connection.send(`${chunkedHead(method)}${end}`);
          assert.equal((await connection.answer()).headers.get('penstock-error'), undefined, end);
          connection.send(chunkedHead(method, 'Expect: 100-continue'));
          await until(5_000, 'the gateway asks for the body', () => connection.unread() === continueResponse);
          connection.send(end.slice(0, -2));
          connection.send('\r\n');
          assert.equal((await connection.answer()).headers.get('penstock-error'), undefined, end);
        }
      });
      assert.equal(bank.requests.length, 8);
      for (const { rawHeaders, body } of bank.requests) {
        assert.equal(body.length, 0);
        const names = rawHeaders.map((name) => name.toLowerCase());
        for (const name of ['transfer-encoding', 'x-trailer']) assert.ok(!names.includes(name), name);
      }
    });

    test(`does not reach the bank for ${method} before its end, or if it breaks off`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      await onConnection(gateway.port, async (connection) => {
        connection.send(`${chunkedHead(method, 'Expect: 100-continue')}0\r\n`);
        await until(5_000, 'the gateway asks for the body', () => connection.unread() === continueResponse);
        assert.equal(bank.connections, 0);
        connection.end();
        const response = await connection.answer();
        assert.deepEqual([response.status, response.headers.get('penstock-error')], [408, 'REQUEST_TIMEOUT']);
      });
      assert.equal(bank.connections, 0);
    });
  }

  test('is accepted from a client with a quota, and one byte is refused', async (t) => {
    const { gateway } = await startGatewayWithBank(t, {
      clients: clientSettings().map((client) => ({ ...client, quota: { rate: '100/s', burst: 100 } })),
    });
    const key = `X-API-Key: ${apiKeyOf('shop')}`;
    await onConnection(gateway.port, async (connection) => {
      for (const expect of [[], ['Expect: 100-continue']]) {
        connection.send(`${chunkedHead('DELETE', key, ...expect)}0\r\n\r\n`);
        const response = await connection.answer();
        assert.equal(response.headers.get('penstock-error'), 'PAYMENT_UNKNOWN');
        assert.ok(response.headers.has('ratelimit'));
      }
      connection.send(`${chunkedHead('DELETE', key)}1\r\n \r\n0\r\n\r\n`);
      assert.equal((await connection.answer()).headers.get('penstock-error'), 'BODY_UNEXPECTED');
    });
  });
});

const continueResponse = 'HTTP/1.1 100 Continue\r\n\r\n';

/** The head of a status read or a cancellation with a chunked body. */
function chunkedHead(method: string, ...more: readonly string[]): string {
  const path = `${transfersPath}/${randomUUID()}${method === 'GET' ? '/status' : ''}`;
  return head('Transfer-Encoding: chunked', ...more).replace(`POST ${transfersPath}`, `${method} ${path}`);
}
