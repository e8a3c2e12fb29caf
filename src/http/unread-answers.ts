/** Answers that are on their way to TPPs that do not read them: how long they are kept, and how many. */

import type { ServerResponse } from 'node:http';

interface UnreadLimits {
  /** How long a TPP may take nothing of its answer, in milliseconds; noticed within twice that. */
  readonly writeTimeout: number;
  /** Bytes of all answers together; beyond it, whoever has been reading for longest is hung up on. */
  readonly maxUnread: number;
}

/** Watches an answer from its end being written until its last byte is with the system. */
export type WatchReader = (answer: ServerResponse) => void;

/** Nothing is unread yet. */
export function createUnreadAnswers({ writeTimeout, maxUnread }: UnreadLimits): WatchReader {
  const unread = new Map<ServerResponse, number>(); // in the order in which they were written
  let total = 0;
  const forget = (answer: ServerResponse) => {
    total -= unread.get(answer) ?? 0;
    unread.delete(answer);
  };

  return (answer) => {
    const { socket } = answer.req;
    // Emitted when all of the answer is handed to the connection, after it was written and those before it are out.
    answer.once('prefinish', () => {
      const bytes = socket.writableLength;
      if (bytes === 0) return; // the system has taken it all: so it is with nearly every answer
      unread.set(answer, bytes);
      total += bytes;
      // Node looks whether anything was taken since it looked last, and hangs up if not.
      socket.setTimeout(writeTimeout);
      // Before Node's own listener, which limits how long the connection may rest from then on.
      answer.prependOnceListener('finish', () => {
        forget(answer);
        socket.setTimeout(0);
      });
      answer.once('close', () => forget(answer));
      for (const slowest of unread.keys()) {
        if (total <= maxUnread) return;
        slowest.req.socket.destroy();
        forget(slowest); // a small one: more than one may have to go
      }
    });
  };
}
