/** Idle connections of TPP systems and load balancers. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { transfersPath } from '../kit/request.ts';
import { within } from '../kit/within.ts';

/** Sends a read on a new connection. @returns the socket, and the head of the answer */
async function readOn(t: TestContext, port: number) {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  const fields = ['Host: gateway.example', 'X-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721'];
  socket.write(`GET ${transfersPath}/a-payment HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
  const [head] = await within(10_000, 'an answer', once(socket, 'data'));
  return { socket, head: String(head) };
}

test('a connection stays open for 620 s by default, longer than load balancers keep theirs, and the response says so', async (t) => {
  const { gateway } = await startGatewayWithBank(t);
  assert.match((await readOn(t, gateway.port)).head, /\r\nKeep-Alive: timeout=620\r\n/);
});

test('a connection that is idle for listen.idleTimeout is closed by the gateway, and not earlier', async (t) => {
  const { gateway } = await startGatewayWithBank(t, { listen: { idleTimeout: '1s' } });
  const { socket, head } = await readOn(t, gateway.port);
  const answeredAtMs = performance.now();
  assert.match(head, /\r\nKeep-Alive: timeout=1\r\n/);
  await within(20_000, 'the gateway closes it', once(socket.resume(), 'close'));
  assert.ok(performance.now() - answeredAtMs >= 900);
});
