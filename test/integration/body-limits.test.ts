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
});
