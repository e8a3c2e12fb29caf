/** A body that is too large is refused as soon as that is known, and the TPP gets to read why. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, statusRead, transfers } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';

const maxBody = 64 * 1024;
const sections = { listen: { maxBody: '64KiB' } };

const head = (...more: readonly string[]) =>
  [
    `POST ${transfers} HTTP/1.1`,
    'Host: gateway.example',
    `X-Request-ID: ${randomUUID()}`,
    'PSU-IP-Address: 192.168.8.78',
    'Content-Type: application/json',
    ...more,
    '\r\n',
  ].join('\r\n');

describe('a body of one byte too many', () => {
  test('is refused, and one of exactly the limit is not', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
    const fits = initiation.body.padEnd(maxBody, ' ');
    assertRefused(
      await call(gateway.url, { ...initiation, body: `${fits} ` }),
      ...([413, 'BODY_TOO_LARGE', 'FORMAT_ERROR'] as const),
    );
    assert.equal(bank.connections, 0);

    assert.equal((await call(gateway.url, { ...initiation, body: fits })).status, 201);
    assert.equal(bank.requests[0]?.body.length, maxBody);
  });

  test('counts without the framing of its chunks', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
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

describe('a body that is far too large', () => {
  test('lets a TPP that sends all of it first read the answer afterwards', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
    const socket = connect(gateway.port, '127.0.0.1').setEncoding('latin1').pause();
    t.after(() => socket.destroy());
    const body = Buffer.alloc(8 * 1024 * 1024, ' ');

    const sent = new Promise<unknown>((resolve) => {
      socket.once('error', resolve).write(head(`Content-Length: ${body.length}`));
      socket.write(body, resolve);
    });
    assert.ifError(await within(10_000, 'the TPP to have sent all', sent));
    const answer = await within(10_000, 'the answer', once(socket.resume(), 'data'));

    assert.match(String(answer[0]), /^HTTP\/1\.1 413 [\s\S]*BODY_TOO_LARGE/);
    assert.equal(bank.connections, 0);
  });

  test('is answered when it is announced, before any of it has come', async (t) => {
    const { gateway } = await startLine(t, sections);
    await onConnection(gateway.port, async (connection) => {
      connection.send(head('Content-Length: 99999999'));
      const answer = await connection.answer();
      assert.equal(answer.status, 413);
      assert.equal(answer.headers.get('connection'), 'close');
      await connection.closed();
    });
  });

  test('is answered in the middle of its chunks, and then the connection closes', async (t) => {
    const { bank, gateway } = await startLine(t, sections);
    await onConnection(gateway.port, async (connection) => {
      connection.send(head('Transfer-Encoding: chunked'));
      for (let sent = 0; sent <= maxBody; sent += 1_024) connection.send(`400\r\n${' '.repeat(1_024)}\r\n`);
      assert.equal((await connection.answer()).status, 413);
      await connection.closed();
      assert.equal(bank.connections, 0);
    });
  });

  test('is not asked for: a TPP that waits for 100 Continue gets the refusal instead', async (t) => {
    const { gateway } = await startLine(t, sections);
    await onConnection(gateway.port, async (connection) => {
      connection.send(head('Content-Length: 99999999', 'Expect: 100-continue'));
      await until(5_000, 'something has come', () => connection.unread().includes('\r\n\r\n'));
      assert.match(connection.unread(), /^HTTP\/1\.1 413 /);
    });
  });
});

describe('a body where none belongs', () => {
  for (const method of ['GET', 'DELETE']) {
    for (const framing of ['Content-Length: 2', 'Transfer-Encoding: chunked']) {
      test(`(${method} with ${framing}) is refused`, async (t) => {
        const { bank, gateway } = await startLine(t);
        await onConnection(gateway.port, async (connection) => {
          const path = `${transfers}/1${method === 'GET' ? '/status' : ''}`;
          const body = framing.startsWith('C') ? '{}' : '2\r\n{}\r\n0\r\n\r\n';
          connection.send(`${head(framing).replace(`POST ${transfers}`, `${method} ${path}`)}${body}`);
          const answer = await connection.answer();
          assert.deepEqual([answer.status, answer.headers.get('penstock-error')], [400, 'BODY_UNEXPECTED']);
          assert.equal(bank.connections, 0);
        });
      });
    }
  }

  test('is none if its length is 0: the request passes', async (t) => {
    const { bank, gateway } = await startLine(t);
    assert.equal((await call(gateway.url, { ...statusRead, body: '' })).status, 404);
    assert.equal(bank.requests.length, 1);
  });
});
