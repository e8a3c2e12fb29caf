import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { request } from 'node:https';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createConnectionPool, keepAliveHintMs } from '../../../src/upstream/connection-pool.ts';
import { listen } from '../../kit/ports.ts';
import { until } from '../../kit/within.ts';

/** @param slow receives a function for each request to /slow, which sends its response */
async function startPool(t: TestContext, slow: (respond: () => void) => void = () => {}, maxSockets = 10) {
  let connections = 0;
  const server = createServer(({ url }, response) => {
    if (url === '/slow') slow(() => void response.end());
    else response.end();
  });
  server.on('connection', () => {
    connections += 1;
  });
  const { pool, origin } = await startPoolTo(t, server, maxSockets);
  const call = async () => {
    const [response] = await once(get(origin, { agent: pool }), 'response');
    response.resume();
    await until(2_000, 'the connection is idle', () => pool.stats().idle.length > 0);
  };
  return { pool, origin, call, connections: () => connections };
}

async function startPoolTo(t: TestContext, server: Server, maxSockets: number) {
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const environment = { name: 'sandbox', origin };
  const pool = createConnectionPool(environment, { maxSockets, idle: 60_000, maxAge: 300_000 });
  t.after(() => {
    pool.destroy();
    server.close();
  });
  return { pool, origin };
}

test('a pool reuses an idle connection', async (t) => {
  const { pool, call, connections } = await startPool(t);
  await call();
  pool.closeIdle(60_000);
  await call();
  assert.equal(connections(), 1);
});

test('closeIdle() closes connections that were idle for too long', async (t) => {
  const { pool, call, connections } = await startPool(t);
  await call();
  pool.closeIdle(0);
  assert.deepEqual(pool.stats().idle, []);
  await call();
  assert.equal(connections(), 2);
});

test('closeIdle() closes connections of a pool that was not used since they became idle', async (t) => {
  const { pool, origin, connections } = await startPool(t);
  const request = get(origin, { agent: pool });
  const closed = once(request, 'close');
  request.on('response', (response) => response.resume());
  await closed;
  const idleSinceMs = performance.now();
  await until(2_000, 'a moment has passed', () => performance.now() > idleSinceMs + 20);
  pool.closeIdle(10);
  const [response] = await once(get(origin, { agent: pool }), 'response');
  response.resume();
  assert.equal(connections(), 2);
});

test('a pool reuses a connection that was idle for long, once its socket was read', async (t) => {
  const { pool, origin, connections } = await startPool(t);
  for (let call = 0; call < 3; call++) {
    const request = get(origin, { agent: pool });
    const closed = once(request, 'close');
    request.on('response', (response) => response.resume());
    await closed;
    const idleSinceMs = performance.now();
    await until(2_000, 'a moment has passed', () => performance.now() > idleSinceMs + 20);
  }
  assert.equal(connections(), 1);
});

test('a pool keeps every connection that becomes idle, and the one used last comes last', async (t) => {
  const responses: (() => void)[] = [];
  const { pool, origin } = await startPool(t, (respond) => responses.push(respond));
  const calls = [1, 2, 3].map(() => get(`${origin}/slow`, { agent: pool }));
  await until(2_000, 'all have arrived', () => responses.length === 3);
  const ports: (number | undefined)[] = [];
  for (const call of calls) {
    ports.push(call.socket?.localPort);
    call.on('response', (response) => response.resume());
    const closed = once(call, 'close');
    responses[calls.indexOf(call)]?.();
    await closed;
  }
  await until(2_000, 'all are idle', () => pool.stats().idle.length === 3);
  assert.deepEqual(
    pool.stats().idle.map(({ localPort }) => localPort),
    ports,
  );
});

test('drain() closes idle connections immediately and busy ones after their response', async (t) => {
  const responses: (() => void)[] = [];
  const { pool, call, origin } = await startPool(t, (respond) => responses.push(respond));
  await call();
  const [idle] = pool.stats().idle;
  const slow = once(get(`${origin}/slow`, { agent: pool }), 'response');
  const other = once(get(`${origin}/slow`, { agent: pool }), 'response');
  await until(2_000, 'both have arrived', () => responses.length === 2);
  responses[0]?.();
  const [first] = await slow;
  first.resume();
  await until(2_000, 'one connection is idle', () => pool.stats().idle.length === 1);

  pool.drain();
  assert.deepEqual(pool.stats().idle, []);
  assert.equal(pool.stats().busy, 1, 'one connection is busy');
  responses[1]?.();
  const [response] = await other;
  assert.equal(response.statusCode, 200, 'the active call succeeds');
  response.resume();
  await until(2_000, 'nothing is left', () => pool.stats().idle.length + pool.stats().busy === 0);
  assert.equal(idle?.destroyed, true);
});

test('a draining pool still serves the requests that wait for a connection', async (t) => {
  const responses: (() => void)[] = [];
  const { pool, origin, connections } = await startPool(t, (respond) => responses.push(respond), 1);
  const calls = [1, 2, 3].map(() => once(get(`${origin}/slow`, { agent: pool }), 'response'));
  await until(2_000, 'one has arrived', () => responses.length === 1);
  pool.drain();
  for (const [index, call] of calls.entries()) {
    await until(2_000, 'the next has arrived', () => responses.length === index + 1);
    responses[index]?.();
    const [response] = await call;
    response.resume();
  }
  await until(2_000, 'nothing is left', () => pool.stats().idle.length + pool.stats().busy === 0);
  assert.equal(connections(), 1);
});

test('a pool does not reuse a connection beyond the Keep-Alive timeout of the bank', async (t) => {
  let seconds = 1;
  const server = createServer((_, response) => {
    response.writeHead(200, ['Keep-Alive', `timeout=${seconds}, max=100`]).end();
  });
  server.keepAliveTimeout = 0;
  const { pool, origin } = await startPoolTo(t, server, 10);
  const call = async () => {
    const [response] = await once(get(origin, { agent: pool }), 'response');
    response.resume();
    await until(2_000, 'its quarantine is over', () => pool.stats().busy === 0);
  };
  await call();
  assert.equal(pool.stats().idle.length, 0, 'one second is within the safety margin');
  seconds = 60;
  await call();
  assert.equal(pool.stats().idle.length, 1);
});

test('a pool does not give a connection beyond the Keep-Alive timeout to a waiting request', async (t) => {
  const ports: (number | undefined)[] = [];
  const server = createServer(({ socket }, response) => {
    ports.push(socket.remotePort);
    response.writeHead(200, ['Keep-Alive', 'timeout=1']).end();
  });
  server.keepAliveTimeout = 0;
  const { pool, origin } = await startPoolTo(t, server, 1);
  const calls = [1, 2].map(() => once(get(origin, { agent: pool }), 'response'));
  for (const call of calls) {
    const [response] = await call;
    response.resume();
  }
  assert.equal(new Set(ports).size, 2);
});

test('a pool closes connections after the idle time of its configuration', async (t) => {
  const { origin } = await startPool(t);
  const environment = { name: 'sandbox', origin };
  const pool = createConnectionPool(environment, { maxSockets: 10, idle: 40, maxAge: 300_000 });
  t.after(() => pool.destroy());
  const calls = [1, 2].map(() => once(get(origin, { agent: pool }), 'response'));
  for (const [response] of await Promise.all(calls)) response.resume();
  await until(2_000, 'both are closed', () => pool.stats().idle.length + pool.stats().busy === 0);
});

test('a pool uses no connection again after its maximum age, although it may be idle for longer', async (t) => {
  const { origin } = await startPool(t);
  const pool = createConnectionPool({ origin }, { maxSockets: 1, idle: 60_000, maxAge: 100 });
  t.after(() => pool.destroy());
  const portOfCall = async () => {
    const request = get(origin, { agent: pool });
    const [response] = await once(request, 'response');
    const port = request.socket?.localPort;
    response.resume();
    return port;
  };
  const first = await portOfCall();
  const openedAtMs = performance.now();
  await until(5_000, 'the connection is old', () => performance.now() > openedAtMs + 100);
  assert.notEqual(await portOfCall(), first);
});

test('a waiting request gets a new connection when another one fails', async (t) => {
  const responses: (() => void)[] = [];
  const { pool, origin, connections } = await startPool(t, (respond) => responses.push(respond), 1);
  const broken = get(`${origin}/slow`, { agent: pool });
  broken.on('error', () => {});
  const waiting = once(get(origin, { agent: pool }), 'response');
  await until(2_000, 'the first has arrived', () => responses.length === 1);
  broken.destroy();
  const [response] = await waiting;
  response.resume();
  assert.equal(response.statusCode, 200);
  assert.equal(connections(), 2);
});

test('a request that is destroyed while it waits takes no connection from those behind it', async (t) => {
  const responses: (() => void)[] = [];
  const { pool, origin, connections } = await startPool(t, (respond) => responses.push(respond), 1);
  const slow = once(get(`${origin}/slow`, { agent: pool }), 'response');
  const destroyed = get(origin, { agent: pool });
  destroyed.on('error', () => {});
  const behind = once(get(origin, { agent: pool }), 'response');
  await until(2_000, 'the first has arrived', () => responses.length === 1);
  destroyed.destroy();
  responses[0]?.();
  for (const call of [slow, behind]) {
    const [response] = await call;
    response.resume();
  }
  assert.equal(connections(), 1);
});

test('the Host field contains the port unless it is the default of the scheme', async (t) => {
  const { origin } = await startPool(t);
  const environment = {
    name: 'sandbox',
    origin: origin.replace('http:', 'https:'),
    basePath: '',
    standardVersion: '1.3.11',
  };
  const pool = createConnectionPool(environment, { maxSockets: 10, idle: 60_000, maxAge: 300_000 });
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

/** A bank in a worker thread. Answers with the path; sends a second response 10 ms after the one to /unsolicited. */
const bankCode = `
const { createServer } = require('node:net');
const { parentPort } = require('node:worker_threads');
const respond = (text) => 'HTTP/1.1 200 OK\\r\\nContent-Length: ' + text.length + '\\r\\n\\r\\n' + text;
const server = createServer((socket) => {
  socket.setNoDelay(true).on('error', () => {}).on('data', (bytes) => {
    const path = String(bytes).split(' ')[1];
    if (path !== '/unsolicited') return socket.write(respond(path));
    setTimeout(() => socket.write(respond(path)), 2);
    setTimeout(() => socket.write(respond('unsolicited response')), 12);
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

async function startPoolToWorker(t: TestContext) {
  const bank = new Worker(bankCode, { eval: true });
  t.after(() => bank.terminate());
  const [port] = await once(bank, 'message');
  const origin = `http://127.0.0.1:${port}`;
  const environment = { name: 'sandbox', origin };
  const pool = createConnectionPool(environment, { maxSockets: 2, idle: 60_000, maxAge: 300_000 });
  t.after(() => pool.destroy());
  const call = async (path: string) => {
    const [response]: IncomingMessage[] = await once(get(`${origin}${path}`, { agent: pool }), 'response');
    return (await response?.toArray())?.join('');
  };
  return { pool, call };
}

function blockEventLoop(forMs: number): void {
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs);
}

test('after a stall, a pool does not reuse a connection that received an unsolicited response', async (t) => {
  const { pool, call } = await startPoolToWorker(t);
  await Promise.all([call('/a'), call('/b')]);
  await until(2_000, 'both are idle', () => pool.stats().idle.length === 2);
  let quarantines = 0;
  const onFree = () => {
    quarantines += 1;
    // The response to /unsolicited arrives during this stall, and is read when the first quarantine is over.
    if (quarantines === 1) blockEventLoop(8);
    // The unsolicited response arrives during this stall, and is not read yet.
    if (quarantines === 2) blockEventLoop(15);
  };
  for (const connection of pool.stats().idle) connection.on('free', onFree);
  const first = call('/first');
  const unsolicited = call('/unsolicited');
  const others = [call('/third'), call('/fourth')];
  assert.deepEqual(await Promise.all([first, unsolicited, ...others]), [
    '/first',
    '/unsolicited',
    '/third',
    '/fourth',
  ]);
});

test('a Keep-Alive timeout is reduced by a second', () => {
  assert.equal(keepAliveHintMs(['Keep-Alive', 'timeout=5']), 4_000);
  assert.equal(keepAliveHintMs(['Date', 'now', 'keep-alive', 'timeout=75, max=100']), 74_000);
  assert.equal(keepAliveHintMs(['Keep-Alive', 'max=100, timeout=5']), 4_000);
  assert.equal(keepAliveHintMs(['Keep-Alive', 'max=100,Timeout = 5']), 4_000);
});

test('a Keep-Alive timeout of up to a second prevents the reuse of the connection', () => {
  assert.equal(keepAliveHintMs(['Keep-Alive', 'timeout=1']), 0);
  assert.equal(keepAliveHintMs(['Keep-Alive', 'timeout=0']), 0);
});

test('a response without a Keep-Alive timeout sets no limit', () => {
  for (const rawHeaders of [
    [],
    ['timeout=5', 'timeout=5'],
    ['Keep-Alive', 'max=100'],
    ['Keep-Alive', 'timeout=soon'],
    ['Keep-Alive', 'no-timeout=5'],
    ['X-Name', 'Keep-Alive', 'timeout=5', ''],
  ])
    assert.equal(keepAliveHintMs(rawHeaders), Number.POSITIVE_INFINITY, rawHeaders.join());
});
