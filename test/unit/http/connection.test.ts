import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createConnections } from '../../../src/http/connection.ts';
import type { BatchScheduler } from '../../../src/request/batch-scheduler.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { listen } from '../../kit/ports.ts';
import { connectRaw } from '../../kit/raw-connection.ts';
import { until, within } from '../../kit/within.ts';

const limits = { maxConnections: 100, writeTimeout: 60_000, maxUnreadBytes: 100_000 };
const malformed = new GatewayError('HEADER_MALFORMED', 'The request is not valid HTTP/1.1.');
const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** A server that collects its requests instead of answering them. */
async function startServer(t: TestContext, schedule?: BatchScheduler) {
  const started: ServerResponse[] = [];
  const errors: unknown[] = [];
  const failed: unknown[] = [];
  const sockets: Socket[] = [];
  const server = createServer().on('connection', (socket) => sockets.push(socket));
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    started.push(response);
    request.on('error', (error) => errors.push(error));
  };
  const connections = createConnections(server, serve, limits, schedule);
  server.on('request', connections.enqueue);
  server.on('clientError', (cause, socket: Socket) => {
    failed.push(cause);
    connections.fail(socket, malformed, () => socket.end('failed'));
  });
  const port = await listen(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const connect = async () => {
    const connection = await connectRaw(port);
    t.after(connection.destroy);
    return connection;
  };
  const answer = (index: number) => started[index]?.writeHead(200, { 'Content-Length': 2 }).end('ok');
  const waitForRequests = (count: number) =>
    until(5_000, `${count} requests have started`, () => started.length === count);
  return { connections, connect, sockets, started, errors, failed, answer, waitForRequests };
}

describe('connections that are drained', () => {
  test('close after a response whose head is not sent yet, and serve nothing behind it', async (t) => {
    const { connections, connect, started, answer, waitForRequests } = await startServer(t);
    const client = await connect();
    client.send(get + get);
    await waitForRequests(1);
    connections.drain();
    answer(0);
    assert.equal((await client.answer()).headers.get('connection'), 'close');
    await client.closed();
    assert.equal(started.length, 1);
  });

  test('close after the next response if the head of the current one is sent already', async (t) => {
    const { connections, connect, started, answer, waitForRequests } = await startServer(t);
    const client = await connect();
    client.send(get + get);
    await waitForRequests(1);
    started[0]?.writeHead(200, { 'Content-Length': 2 }).flushHeaders();
    connections.drain();
    started[0]?.end('ok');
    assert.equal((await client.answer()).headers.get('connection'), 'keep-alive');
    await waitForRequests(2);
    answer(1);
    assert.equal((await client.answer()).headers.get('connection'), 'close');
  });

  test('close after the response to a request that is received later', async (t) => {
    const { connections, connect, answer, waitForRequests } = await startServer(t);
    const client = await connect();
    connections.drain();
    client.send(get);
    await waitForRequests(1);
    answer(0);
    assert.equal((await client.answer()).headers.get('connection'), 'close');
  });
});

test('closeIdle closes unused and idle connections, and none on which a response is due', async (t) => {
  const { sockets, connections, connect, answer, waitForRequests } = await startServer(t);
  const [unused, idle, busy] = [await connect(), await connect(), await connect()];
  idle.send(get);
  await waitForRequests(1);
  answer(0);
  await idle.answer();
  busy.send(get);
  await waitForRequests(2);
  await until(5_000, 'all connections are accepted', () => sockets.length === 3);

  connections.closeIdle();

  await Promise.all([unused.closed(), idle.closed()]);
  answer(1);
  assert.equal((await busy.answer()).status, 200);
});

describe('a request that waits for its batch', () => {
  async function startHolding(t: TestContext) {
    const held: (() => void)[] = [];
    const started = await startServer(t, (run) => held.push(run));
    const waitForHeld = () => until(5_000, 'a request is held', () => held.length === 1);
    return { ...started, waitForHeld, runBatch: () => held.splice(0).forEach((run) => void run()) };
  }

  test('keeps its connection open, and is served when the batch runs', async (t) => {
    const { connections, connect, started, answer, waitForHeld, runBatch } = await startHolding(t);
    const client = await connect();
    client.send(get);
    await waitForHeld();
    connections.closeIdle();
    assert.equal(started.length, 0);
    runBatch();
    answer(0);
    assert.equal((await client.answer()).status, 200);
  });

  test('gets a parse error in its body when it is started', async (t) => {
    const { connect, errors, failed, waitForHeld, runBatch } = await startHolding(t);
    const client = await connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n');
    await waitForHeld();
    await until(5_000, 'the parser has failed', () => failed.length > 0);
    assert.deepEqual(errors, []);
    runBatch();
    assert.deepEqual(errors, [malformed]);
    assert.equal(client.unread(), '');
  });

  test('is not served if the client disconnects first', async (t) => {
    const { sockets, connect, started, waitForHeld, runBatch } = await startHolding(t);
    const client = await connect();
    client.send(get);
    await waitForHeld();
    const closed = within(5_000, 'the connection to close', once(sockets[0] ?? assert.fail(), 'close'));
    client.destroy();
    await closed;
    runBatch();
    assert.equal(started.length, 0);
  });
});

test('E3: closes the connections of the oldest unread responses until the others fit into the limit', () => {
  const serve = (_: IncomingMessage, response: ServerResponse) => void response.end(bodies.shift());
  const connections = createConnections(createServer(), serve, limits, (run) => run());
  const bodies: Buffer[] = [];
  const sendUnread = (bytes: number): Socket => {
    // Writes never complete, as if neither the client nor the system took a byte.
    const socket = Object.defineProperties(new Socket(), {
      _write: { value: () => {} },
      _writev: { value: null },
    });
    const request = Object.assign(new IncomingMessage(socket), { httpVersionMajor: 1, httpVersionMinor: 1 });
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    bodies.push(Buffer.alloc(bytes));
    connections.enqueue(request, response);
    socket.setTimeout(0); // the timer of `writeTimeout`
    return socket;
  };
  const small = Array.from({ length: 9 }, () => sendUnread(10_000));
  const large = [sendUnread(90_000), sendUnread(90_000)];
  assert.deepEqual(
    [...small, ...large].map(({ destroyed }) => destroyed),
    [...small.map(() => true), true, false],
  );
});
