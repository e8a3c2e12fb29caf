import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { describe, test } from 'node:test';
import { maxQueuedRequests } from '../../src/http/connection.ts';
import { writeResponse } from '../../src/http/write-response.ts';
import type { PisRequest, PisResponse, ResponseStream } from '../../src/request/messages.ts';
import { requestText } from '../kit/attack.ts';
import { startPlainListener } from '../kit/plain-listener.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';
import { connectSlowReader } from '../kit/slow-reader.ts';
import { until } from '../kit/within.ts';
import { operation } from '../unit/notifications/status-read.ts';

/** More than the buffers of the system for one connection, on both sides together. */
const large = Buffer.alloc(32 * 1024 * 1024, 'a');

const streamRequest: PisRequest = {
  operation,
  client: { name: 'shop', tenant: 'shop', environments: ['sandbox'] },
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  headers: [],
  body: Buffer.alloc(0),
  arrivedAtMs: 0,
  deadlineAtMs: 0,
};
const streamResponse: PisResponse = {
  status: 200,
  headers: [],
  body: Buffer.alloc(0),
  servedFrom: 'bank',
  environment: 'sandbox',
};

/** Answers `/small` with a few bytes and all other paths with `large`; counts requests, and responses that are not sent yet. */
function countingApp() {
  const counts = { requests: 0, running: 0 };
  const serve: RequestListener = (request, response) => {
    counts.requests++;
    counts.running++;
    response.once('close', () => counts.running--);
    response.end(request.url === '/small' ? 'small' : large);
  };
  return { serve, counts };
}

const get = (path = '/large') => requestText(`GET ${path} HTTP/1.1`);

/*
 * Attack: the attacker requests large responses on many connections and never reads. What exceeds the buffers of the system
 * stays in the memory of the gateway, until none is left.
 */
describe('a TPP that does not read its responses', () => {
  test('E3: is disconnected if it reads nothing within the write timeout', async (t) => {
    const { serve, counts } = countingApp();
    const { port } = await startPlainListener(t, serve);
    const reader = await connectSlowReader(port, get());
    await until(5_000, 'the request is served', () => counts.requests === 1);
    await until(5_000, 'the response is closed', () => counts.running === 0);
    await reader.hungUp();
    assert.equal((await sendRaw(port, get('/small'))).status, 200);
  });

  test('E3: gets its complete response if it reads slowly but continuously', async (t) => {
    const { serve } = countingApp();
    const { port } = await startPlainListener(t, serve, { writeTimeout: 1_000 });
    const reader = await connectSlowReader(port, get());
    reader.socket.on('data', () => {
      reader.socket.pause();
      setTimeout(() => reader.socket.resume(), 5); // some 64 KiB each time, more than two seconds in total
    });
    reader.resume();
    await until(20_000, 'the response is received', () => reader.read() > large.length);
    reader.socket.destroy();
  });

  test('E3: is disconnected earlier if all unread responses together exceed the limit, the oldest first', async (t) => {
    const { serve, counts } = countingApp();
    const limits = { writeTimeout: 60_000, maxUnreadBytes: 2.5 * large.length };
    const { port } = await startPlainListener(t, serve, limits);
    const readers = [];
    for (let count = 1; count <= 4; count++) {
      readers.push(await connectSlowReader(port, get()));
      await until(5_000, 'the request is served', () => counts.requests === count);
    }
    await until(5_000, 'some responses are closed', () => counts.running <= 2);
    const [first, , , last] = readers;
    await first?.hungUp();
    last?.resume();
    await until(10_000, 'the last response is received', () => (last?.read() ?? 0) > large.length);
    for (const { socket } of readers) socket.destroy();
  });

  test('E3: counts while its stream is open, so that streams are disconnected as well, the oldest first', async (t) => {
    let open = 0;
    let started = 0;
    const limits = { writeTimeout: 60_000, maxUnreadBytes: 2.5 * large.length };
    const { port } = await startPlainListener(
      t,
      (_, response) => {
        open += 1;
        started += 1;
        response.on('close', () => {
          open -= 1;
        });
        const stream: ResponseStream = { start: (sink) => sink.write(large.toString('latin1')) };
        writeResponse(response, streamRequest, { ...streamResponse, stream }, []);
      },
      limits,
    );
    const readers = [];
    for (let count = 1; count <= 4; count++) {
      readers.push(await connectSlowReader(port, get()));
      await until(5_000, 'the stream is started', () => started === count);
    }
    await until(5_000, 'the oldest two are disconnected', () => open === 2);
    const [first, second, , last] = readers;
    await first?.hungUp();
    await second?.hungUp();
    last?.resume();
    await until(10_000, 'the last event is received', () => (last?.read() ?? 0) > large.length);
    for (const { socket } of readers) socket.destroy();
  });

  test('E3, A8: has its next request served only after it has read the response before', async (t) => {
    const { serve, counts } = countingApp();
    const { port } = await startPlainListener(t, serve, { writeTimeout: 60_000 });
    const reader = await connectSlowReader(port, get().repeat(4));
    await until(5_000, 'the request is served', () => counts.requests === 1);
    assert.equal((await sendRaw(port, get('/small'))).status, 200);
    assert.deepEqual(counts, { requests: 2, running: 1 });
    reader.resume();
    await until(20_000, 'all responses are received', () => reader.read() > 4 * large.length);
    assert.equal(counts.requests, 5);
    reader.socket.destroy();
  });
});

/*
 * Attack: a request costs the attacker 100 bytes and the gateway some kilobytes, also while it is queued.
 */
describe('a flood of requests on one connection', () => {
  test('A8: is served up to the limit of queued requests, and the last response closes the connection', async (t) => {
    const { serve, counts } = countingApp();
    const { port } = await startPlainListener(t, serve);
    await onConnection(port, async (connection) => {
      connection.send(get('/small').repeat(maxQueuedRequests + 1 + 5));
      for (let count = 0; count < maxQueuedRequests; count++)
        assert.equal((await connection.answer()).headers.get('connection'), 'keep-alive');
      assert.equal((await connection.answer()).headers.get('connection'), 'close');
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    assert.equal(counts.requests, maxQueuedRequests + 1);
  });

  test('A8: ends with a closed connection if the client continues to send', async (t) => {
    let served = 0;
    const { port } = await startPlainListener(t, () => {
      served++; // and no response
    });
    await onConnection(port, async (connection) => {
      connection.send(get('/small').repeat(maxQueuedRequests * 3));
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    assert.equal(served, 1);
  });
});
