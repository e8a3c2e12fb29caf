/** The answers of Redis: in time, or an error that the gateway understands. */

import { stateUnavailable } from '../flow/errors.ts';

/** How a command is given and awaited. */
export type AnswerTo = <Answer>(give: () => Promise<Answer>) => Promise<Answer>;

/**
 * Awaits commands for a time. After one that was not answered in time no other is given for a while, or until the server
 * is heard of again: a request that asks several times waits for a frozen server once, not each time.
 *
 * What it returns throws GatewayError STATE_UNAVAILABLE; if the answer came too late, the command is perhaps done.
 *
 * @param restMs how long a silent server is left alone; 0 where silence of one server says nothing of the others
 */
export function answersWithin(ms: number, restMs = 0): AnswerTo {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  const heard = () => {
    silentUntilMs = Number.NEGATIVE_INFINITY;
  };
  return async (give) => {
    if (performance.now() < silentUntilMs)
      throw stateUnavailable(new Error('it has just not answered in time'));
    const command = give();
    try {
      const answer = await inTime(ms, command);
      heard();
      return answer;
    } catch (error) {
      if (error instanceof NoAnswer) {
        silentUntilMs = performance.now() + restMs;
        command.then(heard, () => {}); // late, but it speaks
      }
      throw stateUnavailable(new Error(reasonOf(error)));
    }
  };
}

/** A command was not answered in time. */
class NoAnswer extends Error {}

/**
 * The answer to a command, if it comes within a time.
 *
 * When the time is over, what has come meanwhile is read first: after a stall of our own process (of 100 ms, say)
 * the timers run before the sockets are read, and a server that answered in time would be called late.
 */
export async function inTime<Answer>(ms: number, command: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new NoAnswer(`no answer within ${ms} ms`));
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
