/** Detects that a client has disconnected before its response is sent. */

import type { ServerResponse } from 'node:http';

/**
 * How long a request continues after the client has closed its side of the connection. Milliseconds.
 *
 * A client that disconnects and one that only announces the end of its input look the same until a response is written
 * (RFC 9293 section 3.6): the second should get its response, the first should not occupy a place in a queue.
 */
const graceMs = 1_000;

/** Aborts when the connection closes before the response is sent, or `graceMs` after the client has closed its side. */
export function clientDisconnectSignal(outgoing: ServerResponse): AbortSignal {
  const disconnect = new AbortController();
  const { socket } = outgoing.req;
  let timer: NodeJS.Timeout | undefined;
  const onHalfClosed = () => {
    timer = setTimeout(() => disconnect.abort(), graceMs);
  };
  if (socket.readableEnded) onHalfClosed();
  else socket.once('end', onHalfClosed);
  outgoing.once('close', () => {
    clearTimeout(timer);
    socket.off('end', onHalfClosed);
    if (!outgoing.writableFinished) disconnect.abort();
  });
  return disconnect.signal;
}
