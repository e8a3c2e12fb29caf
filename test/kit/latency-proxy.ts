/** A way to a server on this machine on which everything takes its time. */

import { connect, createServer, type Socket } from 'node:net';
import type { Life } from './life.ts';
import { listen } from './ports.ts';

export interface LatencyProxy {
  readonly port: number;
  /** How long whatever is sent from now on takes to get there, in milliseconds; no time at first. */
  delayBy(ms: number): void;
}

/** Closed at the end. @param port of the server */
export async function startLatencyProxy(life: Life, port: number): Promise<LatencyProxy> {
  let delayMs = 0;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (inside) => {
    const outside = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
    inside.on('data', (bytes) => setTimeout(() => outside.write(bytes), delayMs));
    outside.pipe(inside);
  });
  const ownPort = await listen(server);
  life.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: ownPort,
    delayBy(ms) {
      delayMs = ms;
    },
  };
}
