/** The answers that are not yet written, and the request to their TPPs to come back on another connection. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface RunningAnswers {
  /** Takes an answer in until its connection is done with it. */
  add(answer: ServerResponse, socket: Socket): void;
  /** From now on every answer whose head is not written yet says `Connection: close`. */
  drain(): void;
  /** Whether an answer on this connection is still to be written, or still being sent. */
  areOn(socket: Socket): boolean;
}

/** None are running yet. */
export function createRunningAnswers(): RunningAnswers {
  const running = new Map<ServerResponse, Socket>();
  let draining = false;
  return {
    add(answer, socket) {
      running.set(answer, socket);
      answer.once('close', () => running.delete(answer));
      if (draining) answer.shouldKeepAlive = false;
    },
    areOn: (socket) => [...running.values()].includes(socket),
    drain() {
      draining = true;
      for (const answer of running.keys()) if (!answer.headersSent) answer.shouldKeepAlive = false;
    },
  };
}
