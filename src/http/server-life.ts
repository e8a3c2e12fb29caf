/** Opening and closing of a server, as promises. */

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens; resolves with the port, which differs from the asked one if that was 0. Rejects if it cannot be had. */
export function open(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port); // an address object, because it listens on a port
    });
  });
}

/** Takes no new connection, lets running requests end, and then closes. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
