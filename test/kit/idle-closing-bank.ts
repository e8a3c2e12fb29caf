/**
 * A program: a bank that closes connections as soon as they were idle for a time, as a process of its own, so that it
 * closes them while calls are on their way. Says its port. `GET /seen` tells how often each X-Request-ID came.
 */

import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { listen } from './ports.ts';

const idleMs = Number(process.argv[2]);
const seen = new Map<string, number>();
const timers = new WeakMap<Socket, NodeJS.Timeout>();
const server = createServer((request, answer) => {
  const { method, url, headers, socket } = request;
  clearTimeout(timers.get(socket));
  const call = `${method} ${headers['x-request-id']}`;
  request.resume().on('end', () => {
    const asks = url === '/seen';
    if (!asks) seen.set(call, (seen.get(call) ?? 0) + 1);
    const body = JSON.stringify(
      asks ? Object.fromEntries(seen) : { paymentId: call, transactionStatus: 'RCVD' },
    );
    answer.writeHead(method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json' }).end(body);
    answer.on('finish', () =>
      timers.set(
        socket,
        setTimeout(() => socket.destroy(), idleMs),
      ),
    );
  });
});
server.keepAliveTimeout = 0; // it would announce it, and the gateway would know
console.log(`port ${await listen(server)}`);
