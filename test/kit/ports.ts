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

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Whether anybody listens there. */
export function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  return within(2_000, 'a connection or its refusal', opened).finally(() => socket.destroy());
}
