/** The answers that are not yet written, and the request to their TPPs to come back on another connection. */

import type { ServerResponse } from 'node:http';

export interface RunningAnswers {
  /** Takes an answer in until its connection is done with it. */
  add(answer: ServerResponse): void;
  /** From now on every answer, of running requests too, says `Connection: close`. */
  drain(): void;
}

/** None are running yet. */
export function createRunningAnswers(): RunningAnswers {
  const running = new Set<ServerResponse>();
  let draining = false;
  return {
    add(answer) {
      running.add(answer);
      answer.once('close', () => running.delete(answer));
      if (draining) answer.shouldKeepAlive = false;
    },
    drain() {
      draining = true;
      for (const answer of running) answer.shouldKeepAlive = false;
    },
  };
}
