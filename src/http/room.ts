/** Room for new connections: when the door is nearly full, those that rest have to go. */

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Which connections rest between two requests, as far as they are told of. */
export interface Room {
  rests(socket: Socket): void;
  works(socket: Socket): void;
}

/** At which part of the limit resting connections are closed: what is left is room for those that come at once. */
const nearlyFull = 0.95;

/**
 * Limits the connections of a server. What comes beyond the limit is closed without a word, and the server emits `drop`:
 * so it is only when hardly any connection rests.
 */
export function keepRoom(server: Server, maxConnections: number): Room {
  // Cluster workers would otherwise pass on to one another what is too much for them.
  Object.assign(server, { maxConnections, dropMaxConnection: true });
  const resting = new Set<Socket>(); // in the order in which they began to rest
  const known = new WeakSet<Socket>();
  let open = 0;
  server.on('connection', (socket: Socket) => {
    open++;
    socket.once('close', () => open--);
    if (open <= maxConnections * nearlyFull) return;
    const [longest] = resting;
    longest?.destroy();
    if (longest) resting.delete(longest);
  });
  return {
    rests(socket) {
      if (socket.destroyed) return;
      resting.add(socket);
      if (known.has(socket)) return; // it rests after every request
      known.add(socket);
      socket.once('close', () => resting.delete(socket));
    },
    works: (socket) => void resting.delete(socket),
  };
}
