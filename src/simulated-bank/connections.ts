/** Tracks every TCP connection, so that a reset is possible even under TLS. */
import type { Socket } from 'node:net';

interface Accepted {
  /** Counted from 1. */
  readonly number: number;
  readonly tcp: Socket;
}

/** The open connections of a port, and the number of all connections so far. */
export interface TrackedConnections {
  accept(tcp: Socket): void;
  /** The TCP connection under a socket, which may be a TLS socket. */
  of(socket: Socket): Accepted;
  count(): number;
  /** Closes all open connections. */
  drop(): void;
}

export function trackConnections(): TrackedConnections {
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

/** The property that a TLS socket and its TCP socket have in common. */
const peerOf = (socket: Socket) => `${socket.remoteAddress}:${socket.remotePort}`;
