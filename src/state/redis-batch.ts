/** Asks Redis all at once what is asked in one breath: a question costs the client, the kernel and Redis more than a command. */

import type { Writable } from 'node:stream';
import { stateUnavailable } from '../request/errors.ts';
import { maxCharacters } from './redis-scripts.ts';

/** A command on one key. */
export interface Command {
  readonly name: string;
  readonly key: string;
  readonly words: readonly (string | number | Buffer)[];
}

/** Carries commands out in their order, the first at least. @returns of each that was its answer, or an error */
export type ExecuteBatch = (commands: readonly Command[]) => Promise<readonly unknown[]>;

/** @throws GatewayError STATE_UNAVAILABLE as `AnswerTo` does, or with what Redis says against this command */
export type SendCommand = (name: string, key: string, ...words: Command['words']) => Promise<unknown>;

interface QueuedCommand extends Command, PromiseWithResolvers<unknown> {}

/**
 * Asked from within promises, as all of ours are, one breath lasts until no promise is due any more.
 *
 * @param maxBatchSize how many commands Redis may be asked to carry out without doing anything else
 */
export function createCommandBatcher(
  executeBatch: ExecuteBatch,
  withDeadline: WithDeadline,
  maxBatchSize: number,
): SendCommand {
  let queue: QueuedCommand[] = [];

  function sendQueue(): void {
    const all = queue;
    queue = [];
    let together: QueuedCommand[] = [];
    let characters = 0;
    for (const one of all) {
      together.push(one);
      for (const word of one.words) characters += typeof word === 'number' ? 0 : word.length;
      if (together.length < maxBatchSize && characters < maxCharacters) continue;
      void carriedOut(together);
      together = [];
      characters = 0;
    }
    if (together.length > 0) void carriedOut(together);
  }

  async function carriedOut(together: readonly QueuedCommand[]): Promise<void> {
    try {
      const answers = await withDeadline(() => executeBatch(together));
      if (answers.length < together.length) void carriedOut(together.slice(answers.length));
      for (const [index, { resolve, reject }] of together.slice(0, answers.length).entries()) {
        const answer = answers[index];
        if (answer instanceof Error) reject(stateUnavailable(new Error(reasonOf(answer))));
        else resolve(answer);
      }
    } catch (thrown) {
      for (const { reject } of together) reject(thrown);
    }
  }

  return (name, key, ...words) => {
    const one = { name, key, words, ...Promise.withResolvers<unknown>() };
    if (queue.length === 0) process.nextTick(sendQueue);
    queue.push(one);
    return one.promise;
  };
}

// MERGED HEADER (rewrite or remove):
/* The answers of Redis: in time, or an error that the gateway understands. */

/** How a command is given and awaited. */
export type WithDeadline = <Answer>(give: () => Promise<Answer>) => Promise<Answer>;

/**
 * Awaits commands for a time. After one that was not answered in time no other is given for a while, or until the server
 * is heard of again: a request that asks several times waits for a frozen server once, not each time.
 *
 * What it returns throws GatewayError STATE_UNAVAILABLE; if the answer came too late, the command is perhaps done.
 *
 * @param restMs how long a silent server is left alone; 0 where silence of one server says nothing of the others
 */
export function createDeadline(ms: number, restMs = 0): WithDeadline {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  const heard = () => {
    silentUntilMs = Number.NEGATIVE_INFINITY;
  };
  return async (give) => {
    if (performance.now() < silentUntilMs)
      throw stateUnavailable(new Error('it has just not answered in time'));
    const command = give();
    try {
      const answer = await withTimeout(ms, command);
      heard();
      return answer;
    } catch (error) {
      if (error instanceof TimeoutError) {
        silentUntilMs = performance.now() + restMs;
        command.then(heard, () => {}); // late, but it speaks
      }
      throw stateUnavailable(new Error(reasonOf(error)));
    }
  };
}

/** A command was not answered in time. */
class TimeoutError extends Error {}

/**
 * The answer to a command, if it comes within a time.
 *
 * When the time is over, what has come meanwhile is read first: after a stall of our own process (of 100 ms, say)
 * the timers run before the sockets are read, and a server that answered in time would be called late.
 */
export async function withTimeout<Answer>(ms: number, command: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new TimeoutError(`no answer within ${ms} ms`));
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

// MERGED HEADER (rewrite or remove):
/* Lets what is given to connections in one breath leave them in one piece: each write costs a call of the system. */

/**
 * What it returns is called before something is written: nothing leaves until the promises that are due have run.
 *
 * @param connections those that may be written to; asked once a breath
 */
export function corkPerTick(connections: () => readonly Writable[]): () => void {
  let isCorked = false;
  return () => {
    if (isCorked) return;
    isCorked = true;
    const corked = connections();
    for (const connection of corked) connection.cork();
    process.nextTick(() => {
      isCorked = false;
      for (const connection of corked) connection.uncork();
    });
  };
}
