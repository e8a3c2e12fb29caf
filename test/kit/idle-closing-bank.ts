/**
 * A program: a bank that closes connections after a short idle time. It runs as a separate process, so that it closes them
 * while requests are in transit. Prints its port. `GET /seen` returns how often each X-Request-ID was received.
 */

import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { listen } from './ports.ts';

const idleMs = Number(process.argv[2]);
const seen = new Map<string, number>();
const timers = new WeakMap<Socket, NodeJS.Timeout>();
const server = createServer((request, response) => {
  const { method, url, headers, socket } = request;
  clearTimeout(timers.get(socket));
  const call = `${method} ${headers['x-request-id']}`;
  request.resume().on('end', () => {
    const isQuery = url === '/seen';
    if (!isQuery) seen.set(call, (seen.get(call) ?? 0) + 1);
    const body = JSON.stringify(
      isQuery ? Object.fromEntries(seen) : { paymentId: call, transactionStatus: 'RCVD' },
    );
    response.writeHead(method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json' }).end(body);
    response.on('finish', () =>
      timers.set(
        socket,
        setTimeout(() => socket.destroy(), idleMs),
      ),
    );
  });
});
server.keepAliveTimeout = 0; // otherwise the Keep-Alive field would tell the gateway the timeout
console.log(`port ${await listen(server)}`);
