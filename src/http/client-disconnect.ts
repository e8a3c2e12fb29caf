/** Whether a TPP still waits for its answer, as far as its connection tells. */

import type { ServerResponse } from 'node:http';

/**
 * How long a TPP that has closed its side is waited for. Milliseconds.
 *
 * Whoever hangs up and whoever only says that nothing more will come look the same (RFC 9293 section 3.6) until an answer
 * is written: the one should get its answer, the other should not keep a place in a queue.
 */
const graceMs = 1_000;

/** Fires when the connection is closed before the answer is written, or has been closed on the TPP's side for a while. */
export function clientDisconnectSignal(answer: ServerResponse): AbortSignal {
  const left = new AbortController();
  const { socket } = answer.req;
  let timer: NodeJS.Timeout | undefined;
  const sideClosed = () => {
    timer = setTimeout(() => left.abort(), graceMs);
  };
  if (socket.readableEnded) sideClosed();
  else socket.once('end', sideClosed);
  answer.once('close', () => {
    clearTimeout(timer);
    socket.off('end', sideClosed);
    if (!answer.writableFinished) left.abort();
  });
  return left.signal;
}
