/** A TCP proxy in front of a server on this machine that can delay and discard data. */

import { connect, createServer, type Socket } from 'node:net';
import { listen } from './ports.ts';
import type { TestScope } from './test-scope.ts';

export interface TcpProxy {
  readonly port: number;
  /** Delays all further data from clients by `ms` milliseconds; 0 at first. */
  delayBy(ms: number): void;
  /** Discards all further data of the server; the connections stay open, and clients still reach the server. */
  discardResponses(): void;
}

/** @param port of the server */
export async function startTcpProxy(life: TestScope, port: number): Promise<TcpProxy> {
  let delayMs = 0;
  let isDiscarding = false;
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
    client.on('data', (bytes) => {
      if (delayMs === 0) upstream.write(bytes);
      else setTimeout(() => upstream.write(bytes), delayMs);
    });
    upstream.on('data', (bytes) => {
      if (!isDiscarding) client.write(bytes);
    });
    client.on('end', () => upstream.end());
    upstream.on('end', () => client.end());
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
    discardResponses() {
      isDiscarding = true;
    },
  };
}
