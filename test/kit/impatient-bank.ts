/**
 * A program: a bank that closes connections as soon as they were idle for a time, as a process of its own, so that it
 * closes them while calls are on their way. Says its port. `GET /seen` tells how often each X-Request-ID came.
 */

import { createServer } from 'node:http';
import { listen } from './ports.ts';

const idleMs = Number(process.argv[2]);
const seen = new Map<string, number>();
const server = createServer({ keepAliveTimeout: idleMs, keepAliveTimeoutBuffer: 0 }, (request, answer) => {
  const id = String(request.headers['x-request-id'] ?? '');
  request.resume().on('end', () => {
    const asks = request.url === '/seen';
    if (!asks) seen.set(`${request.method} ${id}`, (seen.get(`${request.method} ${id}`) ?? 0) + 1);
    const body = JSON.stringify(
      asks ? Object.fromEntries(seen) : { paymentId: id, transactionStatus: 'RCVD' },
    );
    answer.writeHead(request.method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json' }).end(body);
  });
});
console.log(`port ${await listen(server)}`);
