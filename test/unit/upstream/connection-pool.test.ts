/** What becomes of connections that are kept, on a network on this machine. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { request } from 'node:https';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createConnectionPool, keepAliveHintMs } from '../../../src/upstream/connection-pool.ts';
import { listen } from '../../kit/ports.ts';
import { until } from '../../kit/within.ts';

/** @param slow is handed the answers to calls of /slow, to be given later */
async function startPool(t: TestContext, slow: (answer: () => void) => void = () => {}, maxSockets = 10) {
  let connections = 0;
  const server = createServer(({ url }, answer) => {
    if (url === '/slow') slow(() => void answer.end());
    else answer.end();
  });
  server.on('connection', () => {
    connections += 1;
  });
  const { pool, origin } = await startPoolTo(t, server, maxSockets);
  const call = async () => {
    const [answer] = await once(get(origin, { agent: pool }), 'response');
    answer.resume();
    await until(2_000, 'the connection is kept', () => pool.stats().idle.length > 0);
  };
  return { pool, origin, call, connections: () => connections };
}

async function startPoolTo(t: TestContext, server: Server, maxSockets: number) {
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const pool = createConnectionPool(environment, { maxSockets, idle: 60_000 });
  t.after(() => {
    pool.destroy();
    server.close();
  });
  return { pool, origin };
}

test('a connection that was used just now is used again', async (t) => {
  const { pool, call, connections } = await startPool(t);
  await call();
  pool.closeIdle(60_000);
  await call();
  assert.equal(connections(), 1);
});

test('a connection that was unused for too long is closed, and a new one is made', async (t) => {
  const { pool, call, connections } = await startPool(t);
  await call();
  pool.closeIdle(0);
  assert.deepEqual(pool.stats().idle, []);
  await call();
  assert.equal(connections(), 2);
});

test('of connections that began to rest one after the other, each is kept, and the one used last comes last', async (t) => {
  const answers: (() => void)[] = [];
  const { pool, origin } = await startPool(t, (answer) => answers.push(answer));
  const calls = [1, 2, 3].map(() => get(`${origin}/slow`, { agent: pool }));
  await until(2_000, 'all are on their way', () => answers.length === 3);
  const ports: (number | undefined)[] = [];
  for (const call of calls) {
    ports.push(call.socket?.localPort);
    call.on('response', (answer) => answer.resume());
    const closed = once(call, 'close');
    answers[calls.indexOf(call)]?.();
    await closed;
  }
  await until(2_000, 'all are kept', () => pool.stats().idle.length === 3);
  assert.deepEqual(
    pool.stats().idle.map(({ localPort }) => localPort),
    ports,
  );
});

test('a pool that is drained closes what is idle at once, and what is busy when its answer has come', async (t) => {
  const answers: (() => void)[] = [];
  const { pool, call, origin } = await startPool(t, (answer) => answers.push(answer));
  await call();
  const [idle] = pool.stats().idle;
  const slow = once(get(`${origin}/slow`, { agent: pool }), 'response');
  const other = once(get(`${origin}/slow`, { agent: pool }), 'response');
  await until(2_000, 'both are on their way', () => answers.length === 2);
  answers[0]?.();
  const [first] = await slow;
  first.resume();
  await until(2_000, 'one connection is idle', () => pool.stats().idle.length === 1);

  pool.drain();
  assert.deepEqual(pool.stats().idle, []);
  assert.equal(pool.stats().busy, 1, 'one is still busy');
  answers[1]?.();
  const [answer] = await other;
  assert.equal(answer.statusCode, 200, 'and ends in peace');
  answer.resume();
  await until(2_000, 'nothing is left', () => pool.stats().idle.length + pool.stats().busy === 0);
  assert.equal(idle?.destroyed, true);
});

test('a call that waits for a connection when the pool is drained is sent on the one that comes free', async (t) => {
  const answers: (() => void)[] = [];
  const { pool, origin, connections } = await startPool(t, (answer) => answers.push(answer), 1);
  const calls = [1, 2, 3].map(() => once(get(`${origin}/slow`, { agent: pool }), 'response'));
  await until(2_000, 'one is on its way', () => answers.length === 1);
  pool.drain();
  for (const [index, call] of calls.entries()) {
    await until(2_000, 'the next is on its way', () => answers.length === index + 1);
    answers[index]?.();
    const [answer] = await call;
    answer.resume();
  }
  await until(2_000, 'nothing is left', () => pool.stats().idle.length + pool.stats().busy === 0);
  assert.equal(connections(), 1);
});

test('a connection is not used again when the bank may have closed it, by what its last answer said', async (t) => {
  let seconds = 1;
  const server = createServer((_, answer) => {
    answer.writeHead(200, ['Keep-Alive', `timeout=${seconds}, max=100`]).end();
  });
  server.keepAliveTimeout = 0;
  const { pool, origin } = await startPoolTo(t, server, 10);
  const call = async () => {
    const [answer] = await once(get(origin, { agent: pool }), 'response');
    answer.resume();
    await until(2_000, 'its connection has rested', () => pool.stats().busy === 0);
  };
  await call();
  assert.equal(pool.stats().idle.length, 0, 'a second is too short to be sure');
  seconds = 60;
  await call();
  assert.equal(pool.stats().idle.length, 1);
});

test('nor is it given to a call that waits', async (t) => {
  const ports: (number | undefined)[] = [];
  const server = createServer(({ socket }, answer) => {
    ports.push(socket.remotePort);
    answer.writeHead(200, ['Keep-Alive', 'timeout=1']).end();
  });
  server.keepAliveTimeout = 0;
  const { pool, origin } = await startPoolTo(t, server, 1);
  const calls = [1, 2].map(() => once(get(origin, { agent: pool }), 'response'));
  for (const call of calls) {
    const [answer] = await call;
    answer.resume();
  }
  assert.equal(new Set(ports).size, 2);
});

test('connections that are idle for too long are closed', async (t) => {
  const { origin } = await startPool(t);
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const pool = createConnectionPool(environment, { maxSockets: 10, idle: 40 });
  t.after(() => pool.destroy());
  const calls = [1, 2].map(() => once(get(origin, { agent: pool }), 'response'));
  for (const [answer] of await Promise.all(calls)) answer.resume();
  await until(2_000, 'both are kept', () => pool.stats().idle.length === 2);
  await until(2_000, 'both are closed', () => pool.stats().idle.length + pool.stats().busy === 0);
});

test('when a connection breaks, the call that waited for it gets another one', async (t) => {
  const answers: (() => void)[] = [];
  const { pool, origin, connections } = await startPool(t, (answer) => answers.push(answer), 1);
  const broken = get(`${origin}/slow`, { agent: pool });
  broken.on('error', () => {});
  const waiting = once(get(origin, { agent: pool }), 'response');
  await until(2_000, 'the first is on its way', () => answers.length === 1);
  broken.destroy();
  const [answer] = await waiting;
  answer.resume();
  assert.equal(answer.statusCode, 200);
  assert.equal(connections(), 2);
});

test('a call that was given up while it waited for a connection takes none, and those behind it are served', async (t) => {
  const answers: (() => void)[] = [];
  const { pool, origin, connections } = await startPool(t, (answer) => answers.push(answer), 1);
  const slow = once(get(`${origin}/slow`, { agent: pool }), 'response');
  const givenUp = get(origin, { agent: pool });
  givenUp.on('error', () => {});
  const behind = once(get(origin, { agent: pool }), 'response');
  await until(2_000, 'the first is on its way', () => answers.length === 1);
  givenUp.destroy();
  answers[0]?.();
  for (const call of [slow, behind]) {
    const [answer] = await call;
    answer.resume();
  }
  assert.equal(connections(), 1);
});

test('the port stands in the field Host unless it is that of the scheme', async (t) => {
  const { origin } = await startPool(t);
  const environment = {
    name: 'sandbox',
    origin: origin.replace('http:', 'https:'),
    basePath: '',
    standardVersion: '1.3.11',
  };
  const pool = createConnectionPool(environment, { maxSockets: 10, idle: 60_000 });
  t.after(() => pool.destroy());
  const hostIn = (url: string) =>
    request(url, { agent: pool })
      .on('error', () => {})
      .destroy()
      .getHeader('host');
  assert.deepEqual(
    ['https://bank.example', 'https://bank.example:80', 'https://bank.example:8443'].map(hostIn),
    ['bank.example', 'bank.example:80', 'bank.example:8443'],
  );
});

// MERGED HEADER (rewrite or remove):
/* What a bank sends unasked while this process stands still: the bank is a thread of its own, for it must not stand still. */

/** Answers everything with its path; behind the answer to /unasked comes another one, 10 ms later. */
const bankCode = `
const { createServer } = require('node:net');
const { parentPort } = require('node:worker_threads');
const answer = (text) => 'HTTP/1.1 200 OK\\r\\nContent-Length: ' + text.length + '\\r\\n\\r\\n' + text;
const server = createServer((socket) => {
  socket.setNoDelay(true).on('error', () => {}).on('data', (bytes) => {
    const path = String(bytes).split(' ')[1];
    if (path !== '/unasked') return socket.write(answer(path));
    setTimeout(() => socket.write(answer(path)), 2);
    setTimeout(() => socket.write(answer('not asked for')), 12);
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

async function startPoolToWorker(t: TestContext) {
  const bank = new Worker(bankCode, { eval: true });
  t.after(() => bank.terminate());
  const [port] = await once(bank, 'message');
  const origin = `http://127.0.0.1:${port}`;
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const pool = createConnectionPool(environment, { maxSockets: 2, idle: 60_000 });
  t.after(() => pool.destroy());
  const call = async (path: string) => {
    const [answer]: IncomingMessage[] = await once(get(`${origin}${path}`, { agent: pool }), 'response');
    return (await answer?.toArray())?.join('');
  };
  return { pool, call };
}

function blockEventLoop(forMs: number): void {
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs);
}

test('after a stall a connection that has spoken unasked is not used, although another began to rest before it', async (t) => {
  const { pool, call } = await startPoolToWorker(t);
  await Promise.all([call('/a'), call('/b')]);
  await until(2_000, 'both are kept', () => pool.stats().idle.length === 2);
  let rests = 0;
  const restBegins = () => {
    rests += 1;
    // The answer to /unasked comes while we stand still, and is read when the first connection has rested for long enough.
    if (rests === 1) blockEventLoop(8);
    // What comes unasked behind it is not read yet.
    if (rests === 2) blockEventLoop(15);
  };
  for (const connection of pool.stats().idle) connection.on('free', restBegins);
  const first = call('/first');
  const unasked = call('/unasked');
  const others = [call('/third'), call('/fourth')];
  assert.deepEqual(await Promise.all([first, unasked, ...others]), [
    '/first',
    '/unasked',
    '/third',
    '/fourth',
  ]);
});

test('a connection may be used for a second less than the bank keeps it', () => {
  assert.equal(keepAliveHintMs(['Keep-Alive', 'timeout=5']), 4_000);
  assert.equal(keepAliveHintMs(['Date', 'now', 'keep-alive', 'timeout=75, max=100']), 74_000);
});

test('a bank that keeps it for a second or less does not get another request on it', () => {
  assert.equal(keepAliveHintMs(['Keep-Alive', 'timeout=1']), 0);
  assert.equal(keepAliveHintMs(['Keep-Alive', 'timeout=0']), 0);
});

test('an answer that does not say how long sets no limit', () => {
  for (const rawHeaders of [
    [],
    ['timeout=5', 'timeout=5'],
    ['Keep-Alive', 'max=100'],
    ['Keep-Alive', 'timeout=soon'],
    ['X-Name', 'Keep-Alive', 'timeout=5', ''],
  ])
    assert.equal(keepAliveHintMs(rawHeaders), Number.POSITIVE_INFINITY, rawHeaders.join());
});
