/** The answers of Redis: in time, or an error that the gateway understands. */

import { stateUnavailable } from '../flow/errors.ts';

/** How a command is awaited. */
export type AnswerTo = <Answer>(command: Promise<Answer>) => Promise<Answer>;

/**
 * Awaits commands for a time.
 *
 * What it returns throws GatewayError STATE_UNAVAILABLE; if the answer came too late, the command is perhaps done.
 */
export function answersWithin(ms: number): AnswerTo {
  return async (command) => {
    try {
      return await inTime(ms, command);
    } catch (error) {
      throw stateUnavailable(new Error(reasonOf(error)));
    }
  };
}

/**
 * The answer to a command, if it comes within a time.
 *
 * When the time is over, what has come meanwhile is read first: after a stall of our own process (of 100 ms, say)
 * the timers run before the sockets are read, and a server that answered in time would be called late.
 */
export async function inTime<Answer>(ms: number, command: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new Error(`no answer within ${ms} ms`));
    timer = setTimeout(() => setImmediate(giveUp), ms);
  });
  try {
    return await Promise.race([command, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Why it failed, in words. The error itself is not passed on: it carries the command, and so the values. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || String('code' in error ? error.code : error.name); // several addresses refused: no message
}
