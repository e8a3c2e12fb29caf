/** A TCP proxy that delays what clients send to a server on this machine. */

import { connect, createServer, type Socket } from 'node:net';
import { listen } from './ports.ts';
import type { TestScope } from './test-scope.ts';

export interface LatencyProxy {
  readonly port: number;
  /** Delays all further data from clients by `ms` milliseconds; 0 at first. */
  delayBy(ms: number): void;
}

/** @param port of the server */
export async function startLatencyProxy(life: TestScope, port: number): Promise<LatencyProxy> {
  let delayMs = 0;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
    client.on('data', (bytes) => setTimeout(() => upstream.write(bytes), delayMs));
    upstream.pipe(client);
  });
  const proxyPort = await listen(server);
  life.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: proxyPort,
    delayBy(ms) {
      delayMs = ms;
    },
  };
}
