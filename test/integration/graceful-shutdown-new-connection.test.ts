/** A request that is on its way on a new connection when the gateway stops is answered, not cut off. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { closeServer, openServer } from '../../src/http/server-lifecycle.ts';
import { connectRaw } from '../kit/raw.ts';
import { within } from '../kit/within.ts';

test('a server that stops when a connection was just made still answers the request that comes on it', async (t) => {
  const server = createServer((_request, answer) => answer.setHeader('Connection', 'close').end('late'));
  const port = await openServer(server, '127.0.0.1', 0);
  const accepted = once(server, 'connection');
  const client = await connectRaw(port);
  t.after(client.destroy);
  await accepted;

  const closed = closeServer(server, () => false);
  client.send('GET / HTTP/1.1\r\nHost: gateway.example\r\n\r\n');

  assert.equal((await client.answer()).status, 200);
  await within(5_000, 'the server to close', closed);
});
