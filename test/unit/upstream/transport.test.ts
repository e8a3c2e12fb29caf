import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type ConnectionPool, createConnectionPool } from '../../../src/upstream/connection-pool.ts';
import {
  createTransport,
  LateResponseError,
  type OutboundRequest,
  type Transport,
} from '../../../src/upstream/transport.ts';
import { listen } from '../../kit/ports.ts';
import { until, within } from '../../kit/within.ts';

const get: Omit<OutboundRequest, 'deadlineAtMs'> = {
  lane: 'read',
  method: 'GET',
  path: '/psd2/berlingroup/v1/payments/p/1',
  headers: [],
  body: Buffer.alloc(0),
};

/** A transport to a local server, and its connection pool. */
async function startTransport(t: TestContext, serve: RequestListener, maxSockets = 4) {
  const server = createServer(serve);
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const environment = { name: 'sandbox', origin };
  const pool = createConnectionPool(environment, { maxSockets, idle: 4_000, maxAge: 300_000 });
  t.after(() => {
    pool.destroy();
    server.close();
  });
  return {
    pool,
    origin,
    transport: createTransport(environment, () => pool, { connectMs: 1_000, writeSocketIdleMs: 1_000 }),
  };
}

const send = (transport: Transport, request: Partial<OutboundRequest> = {}) =>
  within(
    4_000,
    'a response',
    transport.send({ ...get, deadlineAtMs: performance.now() + 2_000, ...request }),
  );

/** @param call a write that must fail at its deadline */
async function lateResponse(call: Promise<unknown>) {
  const error = await call.then(
    () => assert.fail('the response is in time'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof LateResponseError);
  assert.equal(error.code, 'OUTCOME_UNKNOWN');
  return error.response;
}

/**
 * Fakes the timers and the clocks of the transport until the test ends. Sockets, and the waits of the tests, use real time.
 *
 * @returns lets time pass, in milliseconds
 */
function useFakeTime(t: TestContext): (ms: number) => void {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  t.mock.method(performance, 'now', () => Date.now());
  return (ms) => t.mock.timers.tick(ms);
}

/** Collects the warnings of the process during the test, such as of too many listeners. */
function collectWarnings(t: TestContext): readonly string[] {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => void warnings.push(message);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  return warnings;
}

describe('transport', () => {
  test('does not send a call whose deadline has passed, even on an idle connection', async (t) => {
    let arrived = 0;
    const { transport } = await startTransport(t, (_request, response) => {
      arrived += 1;
      response.end();
    });
    await send(transport);
    for (let call = 0; call < 20; call += 1) {
      const late = send(transport, { method: 'POST', deadlineAtMs: performance.now() - 1 });
      await assert.rejects(late, { code: 'QUEUE_TIMEOUT' });
    }
    await send(transport);
    assert.equal(arrived, 2);
  });

  test('sends method, path, fields and body unchanged, and adds Host and Content-Length', async (t) => {
    const { transport, origin } = await startTransport(t, (request, response) => {
      request.setEncoding('latin1').on('data', (body) => {
        const { method, url, rawHeaders } = request;
        response.end(JSON.stringify({ method, url, rawHeaders, body }));
      });
    });
    const { body } = await send(transport, {
      method: 'POST',
      headers: [
        ['X-Request-ID', 'one'],
        ['X-Twice', 'a'],
        ['x-twice', 'b'],
        ['PSU-Name', 'J\u00f6rg'],
        ['constructor', 'c'],
        ['X-TWICE', 'c'],
      ],
      body: Buffer.from([0x7b, 0xff, 0x00, 0x7d]),
    });

    assert.deepEqual(JSON.parse(body.toString()), {
      method: 'POST',
      url: get.path,
      rawHeaders: [
        ...['X-Request-ID', 'one', 'X-Twice', 'a', 'X-Twice', 'b', 'X-Twice', 'c', 'PSU-Name', 'J\u00f6rg'],
        ...[
          'constructor',
          'c',
          'content-length',
          '4',
          'host',
          new URL(origin).host,
          'Connection',
          'keep-alive',
        ],
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
      return windowOf(2_000);
    };
    const lateAnswerUntilMs = performance.now() + 2_000;
    await send(transport, {
      method: 'POST',
      sendingMark: { markSending, onDeadline() {}, lateAnswerUntilMs },
    });
    assert.deepEqual(order, ['marked', 'received']);
  });

  test('fails a write at its deadline, and still returns its late response', async (t) => {
    const pass = useFakeTime(t);
    let answer: (() => void) | undefined;
    const { transport } = await startTransport(t, (_request, response) => {
      answer = () => response.writeHead(201).end('late');
    });
    const events: string[] = [];
    let deadlines = 0;
    const sendingMark = {
      markSending: async () => windowOf(1_000),
      onDeadline: () => void deadlines++,
      lateAnswerUntilMs: performance.now() + 20_000,
    };
    const deadlineAtMs = performance.now() + 50;
    const late = lateResponse(
      send(transport, {
        ...{ lane: 'write', method: 'POST', body: Buffer.from('{}'), deadlineAtMs, sendingMark },
        recordEvent: ({ what }) => events.push(what),
      }),
    );
    await until(4_000, 'the write has arrived', () => answer !== undefined);
    pass(49);
    assert.equal(deadlines, 0);
    pass(1);
    assert.equal(deadlines, 1);
    answer?.();

    const { status, body } = await within(4_000, 'the late response', late);
    assert.deepEqual([deadlines, status, body.toString()], [1, 201, 'late']);
    assert.deepEqual(events, ['call'], 'one attempt');
  });

  test('fails a write at its deadline, and the late response when it is not awaited any longer', async (t) => {
    const pass = useFakeTime(t);
    let arrived = 0;
    const { transport } = await startTransport(t, () => void arrived++);
    const sendingMark = {
      markSending: async () => windowOf(1_000),
      onDeadline() {},
      lateAnswerUntilMs: performance.now() + 100,
    };
    const deadlineAtMs = performance.now() + 50;
    const late = lateResponse(send(transport, { lane: 'write', method: 'POST', deadlineAtMs, sendingMark }));
    await until(4_000, 'the write has arrived', () => arrived === 1);
    pass(50);
    await setImmediate();
    pass(50);
    await assert.rejects(within(4_000, 'an error', late), { code: 'OUTCOME_UNKNOWN' });
  });

  test('follows no redirect and returns a response with any status', async (t) => {
    for (const status of [200, 204, 301, 302, 304, 307, 404, 429, 500, 503, 599]) {
      let requests = 0;
      const { transport } = await startTransport(t, (_request, response) => {
        requests += 1;
        response.writeHead(status, { Location: '/elsewhere' }).end();
      });
      assert.equal((await send(transport)).status, status);
      assert.equal(requests, 1);
    }
  });

  test('leaks neither listeners nor sockets in 500 calls', async (t) => {
    const warnings = collectWarnings(t);
    const { transport, pool } = await startTransport(t, (request, response) => {
      request.resume().on('end', () => response.end('{}'));
    });
    const idleListeners = async () => {
      await until(1_000, 'every socket is idle', () => pool.stats().busy === 0);
      return listenersIn(pool) / pool.stats().idle.length;
    };
    await send(transport);
    const before = await idleListeners();
    for (let call = 0; call < 500; call++) {
      await send(transport, call % 2 === 0 ? {} : { method: 'POST', body: Buffer.from('{}') });
    }

    assert.equal(await idleListeners(), before, 'a socket has as many listeners as after its first call');
    assert.ok(pool.stats().idle.length <= 4, 'the pool is bounded');
    assert.deepEqual(warnings, []);
  });

  test('leaks nothing in 500 failing calls', async (t) => {
    const warnings = collectWarnings(t);
    const { transport, pool } = await startTransport(t, (request) => void request.socket.destroy());
    for (let call = 0; call < 500; call++) await assert.rejects(send(transport), { code: 'OUTCOME_UNKNOWN' });
    await until(1_000, 'the last socket is gone', () => pool.stats().busy === 0);

    assert.equal(pool.stats().idle.length, 0);
    assert.equal(pool.stats().waiting, 0);
    assert.deepEqual(warnings, []);
  });

  test('gives up late calls of the tenant with most of them, when all connections are in use', async (t) => {
    const pass = useFakeTime(t);
    const paths: string[] = [];
    let answer: (() => void) | undefined;
    const { transport } = await startTransport(t, ({ url = '' }, response) => {
      paths.push(url);
      if (url === '/patient') answer = () => response.writeHead(201).end();
      if (url === '/next') response.end();
    });
    let deadlines = 0;
    const deadlineAtMs = performance.now() + 300;
    const sendingMark = {
      markSending: async () => windowOf(1_000),
      onDeadline: () => void deadlines++,
      lateAnswerUntilMs: performance.now() + 20_000,
    };
    const sendLate = (path: string, tenant: string) =>
      lateResponse(
        transport.send({ ...get, method: 'POST', lane: 'write', path, tenant, deadlineAtMs, sendingMark }),
      );
    const patient = sendLate('/patient', 'patient');
    const hanging = [1, 2, 3].map(() => sendLate('/hanging', 'hanging').catch(() => 'given up'));
    await until(4_000, 'all have arrived', () => paths.length === 4);
    pass(300);
    assert.equal(deadlines, 4);
    assert.equal((await send(transport, { path: '/next', tenant: 'another' })).status, 200);
    answer?.();
    assert.equal((await within(4_000, 'the late response', patient)).status, 201);
    assert.equal(await within(4_000, 'a call that is given up', Promise.any(hanging)), 'given up');
  });

  test('opens at most maxSockets connections, and removes calls that timed out', async (t) => {
    const pass = useFakeTime(t);
    const arrived: string[] = [];
    const { transport, pool } = await startTransport(t, ({ url = '' }) => void arrived.push(url), 3);
    const codesOf = (calls: number, withinMs: number) =>
      Array.from({ length: calls }, () =>
        send(transport, { deadlineAtMs: performance.now() + withinMs }).catch(({ code }) => code),
      );
    const active = codesOf(3, 500);
    const waiting = codesOf(17, 100);

    await until(4_000, 'three have arrived', () => arrived.length === 3);
    pass(100);
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['QUEUE_TIMEOUT']));
    assert.equal(pool.stats().busy, 3);
    pass(400);
    assert.deepEqual(new Set(await Promise.all(active)), new Set(['OUTCOME_UNKNOWN']));
    await until(1_000, 'no socket is in use', () => pool.stats().busy === 0);
    assert.ok(pool.stats().idle.length <= 3);
    assert.equal(pool.stats().waiting, 0);
    assert.equal(arrived.length, 3);
  });
});

const listenersIn = (pool: ConnectionPool) =>
  pool
    .stats()
    .idle.flatMap((socket) => socket.eventNames().map((name) => socket.listenerCount(name)))
    .reduce((sum, listeners) => sum + listeners, 0);

/** In which a write that is marked now may be sent. */
function windowOf(ms: number) {
  return { untilMs: performance.now() + ms, untilWallMs: Date.now() + ms };
}
