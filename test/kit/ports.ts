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

/** More than one test process ever uses at the same time. */
const blockSize = 400;
let blockStart: Promise<number> | undefined;
let offset = 0;

/**
 * A free port of this process's own block below the ephemeral range: no other socket gets it by chance, neither before
 * its server listens nor while its server is restarted. The port 10 000 above it is free, too.
 */
export async function freePort(): Promise<number> {
  blockStart ??= reserveBlock();
  const first = await blockStart;
  for (let tries = 1; tries < blockSize; tries++) {
    offset = (offset % (blockSize - 1)) + 1;
    const port = first + offset;
    if (await isFree(port)) return port;
  }
  throw new Error(`the ${blockSize} ports from ${first} are in use`);
}

/** Listens on the first port of a block until this process ends, which keeps other processes off the block. */
async function reserveBlock(): Promise<number> {
  const count = Math.floor(10_000 / blockSize);
  const start = Math.floor(Math.random() * count);
  for (let tries = 0; tries < count; tries++) {
    const first = 12_000 + blockSize * ((start + tries) % count);
    const lock = createServer();
    if (await isListening(lock, first)) {
      lock.unref();
      return first;
    }
  }
  throw new Error('other test processes have reserved all ports');
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isUnused = await isListening(server, port);
  if (isUnused) await new Promise((resolve) => server.close(resolve));
  return isUnused;
}

/** Tries to listen on a port. @returns whether it does */
const isListening = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
  });

/** Whether a server listens on a port. */
export function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  return within(2_000, 'a connection or its refusal', opened).finally(() => socket.destroy());
}
