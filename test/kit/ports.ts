/** Ports of this machine: taken, free, open. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import type { TestContext } from 'node:test';
import { within } from './within.ts';

/** Has a server listen on a port of the system's choice. @returns the port */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port; // an address object, because it listens on a port
}

/** A port that somebody else listens on. */
export async function takenPort(t: TestContext): Promise<number> {
  const server = createServer();
  t.after(() => server.close());
  return listen(server);
}

/** A free port that, like the one 10 000 above it, lies below those that the system hands out: nobody takes it meanwhile. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
      .once('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Whether anybody listens there. */
export function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  return within(2_000, 'a connection or its refusal', opened).finally(() => socket.destroy());
}
