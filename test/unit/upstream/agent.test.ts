/** What becomes of connections that are kept: a network on this machine, for the pool is Node's. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { type TestContext, test } from 'node:test';
import { createAgent, type Pool } from '../../../src/upstream/agent.ts';
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
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const pool = createAgent(environment, { maxSockets, idle: 60_000 });
  t.after(() => {
    pool.destroy();
    server.close();
  });
  const call = async () => {
    const [answer] = await once(get(origin, { agent: pool }), 'response');
    answer.resume();
    await until(2_000, 'the connection is kept', () => free(pool).length > 0);
  };
  return { pool, origin, call, connections: () => connections };
}

const free = (pool: Pool) => Object.values(pool.freeSockets).flatMap((sockets = []) => sockets);
const inUse = (pool: Pool) => Object.values(pool.sockets).flatMap((sockets = []) => sockets);

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
  assert.ok(free(pool).every(({ destroyed }) => destroyed));
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
  await until(2_000, 'all are kept', () => free(pool).length === 3);
  assert.deepEqual(
    free(pool).map(({ localPort }) => localPort),
    ports,
  );
});

test('a pool that is drained closes what is idle at once, and what is busy when its answer has come', async (t) => {
  const answers: (() => void)[] = [];
  const { pool, call, origin } = await startPool(t, (answer) => answers.push(answer));
  await call();
  const [idle] = free(pool);
  const slow = once(get(`${origin}/slow`, { agent: pool }), 'response');
  const other = once(get(`${origin}/slow`, { agent: pool }), 'response');
  await until(2_000, 'both are on their way', () => answers.length === 2);
  answers[0]?.();
  const [first] = await slow;
  first.resume();
  await until(2_000, 'one connection is idle', () => free(pool).length === 1);

  pool.drain();
  assert.equal(free(pool).filter(({ destroyed }) => !destroyed).length, 0);
  assert.equal(inUse(pool).filter(({ destroyed }) => !destroyed).length, 1, 'one is still busy');
  answers[1]?.();
  const [answer] = await other;
  assert.equal(answer.statusCode, 200, 'and ends in peace');
  answer.resume();
  await until(2_000, 'nothing is left', () => free(pool).length + inUse(pool).length === 0);
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
  await until(2_000, 'nothing is left', () => free(pool).length + inUse(pool).length === 0);
  assert.equal(connections(), 1);
});
