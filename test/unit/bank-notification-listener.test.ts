import assert from 'node:assert/strict';
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createBankNotificationListener } from '../../src/bank-notification-listener.ts';
import { openServer } from '../../src/http/listener.ts';
import { until } from '../kit/within.ts';

const token = 'valid';

async function startListener(t: TestContext, state = { isBusy: false, isFull: false, isAvailable: true }) {
  const accepted: string[] = [];
  const counted: string[] = [];
  const listener = createBankNotificationListener({
    verify: (text) =>
      state.isAvailable ? (text === token ? { id: 'id', environmentId: 'e1' } : undefined) : 'unavailable',
    accept(id) {
      if (state.isFull) return false;
      accepted.push(id);
      return true;
    },
    isBusy: () => state.isBusy,
    environmentNameOf: (id) => (id === 'e1' ? 'production' : ''),
    metrics: {
      increment: (name, labels) => void counted.push([name, ...Object.values(labels)].join(' ')),
    },
  });
  const port = await openServer(listener.server, { host: '127.0.0.1', port: 0 });
  t.after(() => listener.close());

  function send(method: string, path: string, body?: Buffer, headers: OutgoingHttpHeaders = {}) {
    return new Promise<{
      readonly status: number;
      readonly headers: Record<string, unknown>;
      readonly body: string;
    }>((resolve, reject) => {
      const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false });
      request.on('error', reject).on('response', (response) => {
        let text = '';
        response
          .setEncoding('utf8')
          .on('data', (chunk) => {
            text += chunk;
          })
          .on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
          );
      });
      request.end(body);
    });
  }
  const results = () => counted.map((line) => line.replace('penstock_bank_notifications_total ', ''));
  return { port, send, accepted, results, state };
}

const ofBytes = (bytes: number) => Buffer.alloc(bytes, 'x');
const chunked = { 'Transfer-Encoding': 'chunked' };

describe('the listener for notifications', () => {
  test('takes a POST to a valid URI, with any body or none, and does not read what it says', async (t) => {
    const { send, accepted, results } = await startListener(t);
    const id = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
    const replies = [
      await send('POST', `/${token}`, Buffer.from('{"transactionStatus":"ACSC"}'), { 'X-Request-ID': id }),
      await send('POST', `/${token}`),
      await send('POST', `/psd2/notifications/${token}?more=1`, Buffer.from('not JSON {')),
      await send('POST', `/${token}`, ofBytes(65_536)),
      await send('POST', `/${token}`, ofBytes(65_536), chunked),
    ];
    assert.deepEqual(
      replies.map(({ status, body }) => [status, body]),
      replies.map(() => [200, '']),
    );
    assert.equal(replies[0]?.headers['x-request-id'], id);
    assert.equal(accepted.length, replies.length);
    assert.deepEqual(
      results(),
      replies.map(() => 'production accepted'),
    );
  });

  test('refuses bodies of more than 64 KiB, announced or not', async (t) => {
    const { send, accepted, results } = await startListener(t);
    assert.equal((await send('POST', `/${token}`, ofBytes(65_537))).status, 413);
    assert.equal((await send('POST', `/${token}`, ofBytes(65_537), chunked)).status, 413);
    assert.deepEqual([accepted, results()], [[], ['production too_large', 'production too_large']]);
  });

  test('refuses all other methods, whether or not the URI is valid', async (t) => {
    const { send, accepted, results } = await startListener(t);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])
      for (const path of [`/${token}`, '/unknown']) {
        const { status, headers } = await send(method, path);
        assert.deepEqual([status, headers.allow], [405, 'POST'], method);
      }
    assert.deepEqual([accepted, new Set(results())], [[], new Set([' refused'])]);
  });

  test('answers 404 to any other URI, without reading the body', async (t) => {
    const { send, accepted, results } = await startListener(t);
    for (const path of ['/', '/other', `/${token}x`, `/${token}/`, `/?${token}`, `/${token}%20`])
      assert.equal((await send('POST', path, Buffer.from('{}'))).status, 404, path);
    assert.equal((await send('POST', '/other', ofBytes(1), { 'Content-Length': 1 })).status, 404);
    assert.deepEqual([accepted, new Set(results())], [[], new Set([' unknown'])]);
  });

  test('asks the bank to send again while the gateway is overloaded, or its state unavailable', async (t) => {
    const { send, accepted, results, state } = await startListener(t);
    for (const problem of [{ isBusy: true }, { isFull: true }, { isAvailable: false }]) {
      Object.assign(state, { isBusy: false, isFull: false, isAvailable: true }, problem);
      const { status, headers } = await send('POST', `/${token}`, Buffer.from('{}'));
      assert.deepEqual([status, headers['retry-after'] !== undefined], [503, true]);
    }
    assert.deepEqual(accepted, []);
    assert.deepEqual(results(), ['production overloaded', 'production overloaded', ' overloaded']);
  });

  test('does not take a notification whose sender disconnects, nor a malformed one', async (t) => {
    const { port, accepted, results } = await startListener(t);
    const heads = [
      `POST /${token} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf`,
      `POST /${token} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx`,
      'no HTTP at all\r\n\r\n',
    ];
    for (const head of heads) {
      const before = results().length;
      const socket = connect(port, '127.0.0.1', () => socket.end(head));
      socket.on('error', () => {}).resume();
      await until(5_000, 'it is counted', () => results().length > before);
      socket.destroy();
    }
    assert.deepEqual(accepted, []);
    assert.ok(
      results().every((result) => result.endsWith('refused')),
      results().join(),
    );
  });
});
