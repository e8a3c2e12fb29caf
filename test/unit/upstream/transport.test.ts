import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { type ConnectionPool, createConnectionPool } from '../../../src/upstream/connection-pool.ts';
import { createTransport, type OutboundRequest, type Transport } from '../../../src/upstream/transport.ts';
import { listen } from '../../kit/ports.ts';
import { until, within } from '../../kit/within.ts';

const get: Omit<OutboundRequest, 'deadlineAtMs'> = {
  lane: 'read',
  method: 'GET',
  path: '/psd2/berlingroup/v1/payments/p/1',
  headers: [],
  body: Buffer.alloc(0),
};

/** A transport to a server on this machine, and the pool it draws from. */
async function startTransport(t: TestContext, serve: RequestListener, maxSockets = 4) {
  const server = createServer(serve);
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const agent = createConnectionPool(environment, { maxSockets, idle: 4_000 });
  t.after(() => {
    agent.destroy();
    server.close();
  });
  return {
    agent,
    origin,
    transport: createTransport(environment, () => agent, { connectMs: 1_000, writeSocketIdleMs: 1_000 }),
  };
}

const send = (transport: Transport, request: Partial<OutboundRequest> = {}) =>
  within(4_000, 'an answer', transport.send({ ...get, deadlineAtMs: performance.now() + 2_000, ...request }));

/** Every warning of the process while the test runs, such as of too many listeners. */
function warnings(t: TestContext): readonly string[] {
  const heard: string[] = [];
  const hear = ({ message }: Error) => void heard.push(message);
  process.on('warning', hear);
  t.after(() => process.off('warning', hear));
  return heard;
}

describe('transport', () => {
  test('sends nothing of a call whose deadline has passed, though a connection is at hand', async (t) => {
    let arrived = 0;
    const { transport } = await startTransport(t, (_request, answer) => {
      arrived += 1;
      answer.end();
    });
    await send(transport);
    for (let call = 0; call < 20; call += 1) {
      const late = send(transport, { method: 'POST', deadlineAtMs: performance.now() - 1 });
      await assert.rejects(late, { code: 'QUEUE_TIMEOUT' });
    }
    await send(transport);
    assert.equal(arrived, 2);
  });

  test('sends method, path, fields and bytes as they are, with Host and length of its own', async (t) => {
    const { transport, origin } = await startTransport(t, (request, answer) => {
      request.setEncoding('latin1').on('data', (body) => {
        const { method, url, rawHeaders } = request;
        answer.end(JSON.stringify({ method, url, rawHeaders, body }));
      });
    });
    const { body } = await send(transport, {
      method: 'POST',
      headers: [
        ['X-Request-ID', 'one'],
        ['X-Twice', 'a'],
        ['x-twice', 'b'],
        ['PSU-Name', 'J\u00f6rg'],
      ],
      body: Buffer.from([0x7b, 0xff, 0x00, 0x7d]),
    });

    assert.deepEqual(JSON.parse(body.toString()), {
      method: 'POST',
      url: get.path,
      rawHeaders: [
        ...['X-Request-ID', 'one', 'X-Twice', 'a', 'X-Twice', 'b', 'PSU-Name', 'J\u00f6rg'],
        ...['content-length', '4', 'host', new URL(origin).host, 'Connection', 'keep-alive'],
      ],
      body: '{\u00ff\u0000}',
    });
  });

  test('sends nothing before the write is marked as sending', async (t) => {
    const order: string[] = [];
    const { transport } = await startTransport(t, (_request, response) => {
      order.push('received');
      response.end();
    });
    const markSending = async () => {
      order.push('marked');
      return performance.now() + 2_000;
    };
    const lateAnswerUntilMs = performance.now() + 2_000;
    await send(transport, { method: 'POST', sendingMark: { markSending, lateAnswerUntilMs } });
    assert.deepEqual(order, ['marked', 'received']);
  });

  test('follows no redirect and takes every status for an answer', async (t) => {
    for (const status of [200, 204, 301, 302, 304, 307, 404, 429, 500, 503, 599]) {
      let asked = 0;
      const { transport } = await startTransport(t, (_request, answer) => {
        asked += 1;
        answer.writeHead(status, { Location: '/elsewhere' }).end();
      });
      assert.equal((await send(transport)).status, status);
      assert.equal(asked, 1);
    }
  });

  test('leaves neither listeners nor sockets behind after 2,000 calls', async (t) => {
    const heard = warnings(t);
    const { transport, agent } = await startTransport(t, (request, answer) => {
      request.resume().on('end', () => answer.end('{}'));
    });
    const listenersAtRest = async () => {
      await until(1_000, 'every socket is free', () => agent.stats().busy === 0);
      return listenersIn(agent) / agent.stats().idle.length;
    };
    await send(transport);
    const atFirst = await listenersAtRest();
    for (let call = 0; call < 2_000; call++) {
      await send(transport, call % 2 === 0 ? {} : { method: 'POST', body: Buffer.from('{}') });
    }

    assert.equal(await listenersAtRest(), atFirst, 'a socket has as many listeners as after its first call');
    assert.ok(agent.stats().idle.length <= 4, 'the pool is bounded');
    assert.deepEqual(heard, []);
  });

  test('leaves nothing behind after 500 calls that fail', async (t) => {
    const heard = warnings(t);
    const { transport, agent } = await startTransport(t, (request) => void request.socket.destroy());
    for (let call = 0; call < 500; call++) await assert.rejects(send(transport), { code: 'OUTCOME_UNKNOWN' });
    await until(1_000, 'the last socket is gone', () => agent.stats().busy === 0);

    assert.equal(agent.stats().idle.length, 0);
    assert.equal(agent.stats().waiting, 0);
    assert.deepEqual(heard, []);
  });

  test('opens no more sockets than the pool may hold, and forgets the calls it gave up', async (t) => {
    const arrived: string[] = [];
    const { transport, agent } = await startTransport(t, ({ url = '' }) => void arrived.push(url), 3);
    const codesOf = (calls: number, withinMs: number) =>
      Array.from({ length: calls }, () =>
        send(transport, { deadlineAtMs: performance.now() + withinMs }).catch(({ code }) => code),
      );
    const holders = codesOf(3, 500);
    const others = codesOf(17, 100);

    assert.deepEqual(new Set(await Promise.all(others)), new Set(['QUEUE_TIMEOUT']));
    assert.equal(agent.stats().busy, 3);
    assert.deepEqual(new Set(await Promise.all(holders)), new Set(['OUTCOME_UNKNOWN']));
    await until(1_000, 'no socket is in use', () => agent.stats().busy === 0);
    assert.ok(agent.stats().idle.length <= 3);
    assert.equal(agent.stats().waiting, 0);
    assert.equal(arrived.length, 3);
  });
});

const listenersIn = (pool: ConnectionPool) =>
  pool
    .stats()
    .idle.flatMap((socket) => socket.eventNames().map((name) => socket.listenerCount(name)))
    .reduce((sum, listeners) => sum + listeners, 0);
