/** Detects that a client has disconnected before its response is sent. */

import type { ServerResponse } from 'node:http';
import type { DisconnectSignal } from '../request/messages.ts';

/**
 * How long a request continues after the client has closed its side of the connection. Milliseconds.
 *
 * A client that disconnects and one that only announces the end of its input look the same until a response is written
 * (RFC 9293 section 3.6): the second should get its response, the first should not occupy a place in a queue.
 */
const graceMs = 1_000;

/**
 * Aborts when the connection closes before the response is sent, or `graceMs` after the client has closed its side.
 *
 * Listens to the connection only after the first `addEventListener`: most requests never wait, and do not need it.
 */
export class ClientDisconnect implements DisconnectSignal {
  readonly #outgoing: ServerResponse;
  #watch: AbortController | undefined = undefined;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  get aborted(): boolean {
    return this.#watch?.signal.aborted ?? isCutOff(this.#outgoing);
  }

  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void {
    this.#watch ??= watch(this.#outgoing);
    this.#watch.signal.addEventListener(type, listener, options);
  }

  removeEventListener(type: 'abort', listener: () => void): void {
    this.#watch?.signal.removeEventListener(type, listener);
  }
}

const isCutOff = (outgoing: ServerResponse) => outgoing.closed && !outgoing.writableFinished;

function watch(outgoing: ServerResponse): AbortController {
  const disconnect = new AbortController();
  const { socket } = outgoing.req;
  let timer: NodeJS.Timeout | undefined;
  const onHalfClosed = () => {
    timer = setTimeout(() => disconnect.abort(), graceMs);
  };
  if (isCutOff(outgoing)) disconnect.abort();
  else if (socket.readableEnded) onHalfClosed();
  else socket.once('end', onHalfClosed);
  outgoing.once('close', () => {
    clearTimeout(timer);
    socket.off('end', onHalfClosed);
    if (isCutOff(outgoing)) disconnect.abort();
  });
  return disconnect;
}
