/** Free, used and open ports of this machine. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import type { TestContext } from 'node:test';
import { within } from './within.ts';

/** Starts to listen on a free port. @returns the port */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port; // an address object, because it listens on a port
}

/** A port that another server listens on. */
export async function takenPort(t: TestContext): Promise<number> {
  const server = createServer();
  t.after(() => server.close());
  return listen(server);
}

/** A free port below the ephemeral range, as is the port 10 000 above it: no other program gets it by chance. */
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

/** Whether a server listens on a port. */
export function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  return within(2_000, 'a connection or its refusal', opened).finally(() => socket.destroy());
}
