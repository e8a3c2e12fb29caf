import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { describe, test } from 'node:test';
import { maxQueuedRequests } from '../../src/http/connection.ts';
import { requestText } from '../kit/attack.ts';
import { startDoor } from '../kit/plain-door.ts';
import { onConnection, sendRaw } from '../kit/raw.ts';
import { connectSlowReader } from '../kit/slow-reader.ts';
import { until } from '../kit/within.ts';

/** More than the system keeps for a connection, on both sides together. */
const large = Buffer.alloc(32 * 1024 * 1024, 'a');

/** Answers `/small` with little and all else with much; counts what it was asked, and what has not ended yet. */
function countingApp() {
  const seen = { begun: 0, running: 0 };
  const serve: RequestListener = (request, answer) => {
    seen.begun++;
    seen.running++;
    answer.once('close', () => seen.running--);
    answer.end(request.url === '/small' ? 'small' : large);
  };
  return { serve, seen };
}

const ask = (path = '/large') => requestText(`GET ${path} HTTP/1.1`);

/*
 * The story: the attacker asks for a large answer on many connections and never reads. What the system does not take
 * stays in the gateway's memory, until there is none left.
 */
describe('a TPP that does not read', () => {
  test('E3: is hung up on when it has taken nothing for the time it has', async (t) => {
    const { serve, seen } = countingApp();
    const { port } = await startDoor(t, serve);
    const reader = await connectSlowReader(port, ask());
    await until(5_000, 'it was answered', () => seen.begun === 1);
    await until(5_000, 'it is forgotten', () => seen.running === 0);
    await reader.hungUp();
    assert.equal((await sendRaw(port, ask('/small'))).status, 200);
  });

  test('E3: gets all of it, if it goes on reading however slowly', async (t) => {
    const { serve } = countingApp();
    const { port } = await startDoor(t, serve, { writeTimeout: 400 });
    const reader = await connectSlowReader(port, ask());
    const started = performance.now();
    reader.socket.on('data', () => {
      reader.socket.pause();
      setTimeout(() => reader.socket.resume(), 2); // some 64 KiB each time: a second in all
    });
    reader.resume();
    await until(20_000, 'all has come', () => reader.read() > large.length);
    t.diagnostic(`${Math.round(performance.now() - started)} ms for an answer that may rest 400 ms`);
    reader.socket.destroy();
  });

  test('E3: is hung up on earlier when all unread answers together are too many, the oldest first', async (t) => {
    const { serve, seen } = countingApp();
    const limits = { writeTimeout: 60_000, maxUnreadBytes: 2.5 * large.length };
    const { port } = await startDoor(t, serve, limits);
    const readers = [];
    for (let count = 1; count <= 4; count++) {
      readers.push(await connectSlowReader(port, ask()));
      await until(5_000, 'it was answered', () => seen.begun === count);
    }
    await until(5_000, 'some are forgotten', () => seen.running <= 2);
    const [first, , , last] = readers;
    await first?.hungUp();
    last?.resume();
    await until(10_000, 'the last one has it all', () => (last?.read() ?? 0) > large.length);
    for (const { socket } of readers) socket.destroy();
  });

  test('E3, A8: is served nothing more before it has taken what it asked for first', async (t) => {
    const { serve, seen } = countingApp();
    const { port } = await startDoor(t, serve, { writeTimeout: 60_000 });
    const reader = await connectSlowReader(port, ask().repeat(4));
    await until(5_000, 'it was answered', () => seen.begun === 1);
    assert.equal((await sendRaw(port, ask('/small'))).status, 200);
    assert.deepEqual(seen, { begun: 2, running: 1 });
    reader.resume();
    await until(20_000, 'it has it all', () => reader.read() > 4 * large.length);
    assert.equal(seen.begun, 5);
    reader.socket.destroy();
  });
});

/*
 * The story: a request costs the attacker 100 bytes and the gateway some kilobytes, also while it waits for its turn.
 */
describe('a flood of requests on one connection', () => {
  test('A8: as many as may wait are served, and the last of them says that it is', async (t) => {
    const { serve, seen } = countingApp();
    const { port } = await startDoor(t, serve);
    await onConnection(port, async (connection) => {
      connection.send(ask('/small').repeat(maxQueuedRequests + 1 + 5));
      for (let count = 0; count < maxQueuedRequests; count++)
        assert.equal((await connection.answer()).headers.get('connection'), 'keep-alive');
      assert.equal((await connection.answer()).headers.get('connection'), 'close');
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    assert.equal(seen.begun, maxQueuedRequests + 1);
  });

  test('A8: who goes on and on is hung up on', async (t) => {
    let begun = 0;
    const { port } = await startDoor(t, () => {
      begun++; // and never answers
    });
    await onConnection(port, async (connection) => {
      connection.send(ask('/small').repeat(maxQueuedRequests * 3));
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    assert.equal(begun, 1);
  });
});
