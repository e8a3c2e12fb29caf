/** What becomes of connections that are kept: a network on this machine, for the pool is Node's. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createAgent, type Pool } from '../../../src/upstream/agent.ts';
import { until } from '../../kit/within.ts';

async function startPool(t: TestContext) {
  let connections = 0;
  const server = createServer((_request, answer) => void answer.end());
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const pool = createAgent(environment, { maxSockets: 10, idle: 60_000 });
  t.after(() => {
    pool.destroy();
    server.close();
  });
  const call = async () => {
    const [answer] = await once(get(origin, { agent: pool }), 'response');
    answer.resume();
    await until(2_000, 'the connection is kept', () => free(pool).length > 0);
  };
  return { pool, call, connections: () => connections };
}

const free = (pool: Pool) => Object.values(pool.freeSockets).flatMap((sockets = []) => sockets);

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
