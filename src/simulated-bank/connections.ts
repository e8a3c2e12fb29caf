/** Every TCP connection, numbered and within reach of a reset even where TLS lies on top of it. */
import type { Socket } from 'node:net';

interface Accepted {
  /** Counted from 1. */
  readonly number: number;
  readonly tcp: Socket;
}

/** The open connections of a port, and a count of all there ever were. */
export interface Connections {
  accept(tcp: Socket): void;
  /** The TCP connection under a socket, which may be a TLS socket. */
  of(socket: Socket): Accepted;
  count(): number;
  /** Closes all that are open. */
  drop(): void;
}

/** No connections yet. */
export function createConnections(): Connections {
  const open = new Map<string, Accepted>();
  let count = 0;

  return {
    accept: (tcp) => {
      count += 1;
      const peer = peerOf(tcp);
      open.set(peer, { number: count, tcp });
      tcp.once('close', () => {
        if (open.get(peer)?.tcp === tcp) open.delete(peer);
      });
    },
    of: (socket) => open.get(peerOf(socket)) ?? { number: 0, tcp: socket },
    count: () => count,
    drop: () => {
      for (const { tcp } of open.values()) tcp.destroy();
    },
  };
}

/** The one thing that a TLS socket and the TCP socket under it have in common. */
const peerOf = (socket: Socket) => `${socket.remoteAddress}:${socket.remotePort}`;
