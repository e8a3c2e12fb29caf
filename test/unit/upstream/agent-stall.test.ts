/** What a bank sends unasked while this process stands still: the bank is a thread of its own, for it must not stand still. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createAgent } from '../../../src/upstream/agent.ts';
import { until } from '../../kit/within.ts';

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

async function startPool(t: TestContext) {
  const bank = new Worker(bankCode, { eval: true });
  t.after(() => bank.terminate());
  const [port] = await once(bank, 'message');
  const origin = `http://127.0.0.1:${port}`;
  const environment = { name: 'sandbox', origin, basePath: '', standardVersion: '1.3.11' };
  const pool = createAgent(environment, { maxSockets: 2, idle: 60_000 });
  t.after(() => pool.destroy());
  const call = async (path: string) => {
    const [answer]: IncomingMessage[] = await once(get(`${origin}${path}`, { agent: pool }), 'response');
    return (await answer?.toArray())?.join('');
  };
  return { pool, call };
}

function standStill(forMs: number): void {
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs);
}

test('after a stall a connection that has spoken unasked is not used, although another began to rest before it', async (t) => {
  const { pool, call } = await startPool(t);
  await Promise.all([call('/a'), call('/b')]);
  await until(2_000, 'both are kept', () => pool.view().idle.length === 2);
  let rests = 0;
  const restBegins = () => {
    rests += 1;
    // The answer to /unasked comes while we stand still, and is read when the first connection has rested for long enough.
    if (rests === 1) standStill(8);
    // What comes unasked behind it is not read yet.
    if (rests === 2) standStill(15);
  };
  for (const connection of pool.view().idle) connection.on('free', restBegins);
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
