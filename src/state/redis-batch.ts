/**
 * Sends all commands issued in one tick to Redis as one batch, with a deadline for the answer. A batch costs the client,
 * the kernel and Redis about as much as a single command (ADR 65).
 */

import type { Writable } from 'node:stream';
import { stateUnavailable } from '../request/errors.ts';
import { maxCharacters } from './redis-scripts.ts';

/** A command on one key. */
export interface RedisCommand {
  readonly name: string;
  readonly key: string;
  readonly args: readonly (string | number | Buffer)[];
  /** More keys in the same slot. The script receives the position of the first one before the other arguments. */
  readonly otherKeys?: readonly string[] | undefined;
}

/**
 * Executes commands in their order; may stop early, but not before the first.
 *
 * @returns for each executed command its result or an error
 */
export type ExecuteBatch = (commands: readonly RedisCommand[]) => Promise<readonly unknown[]>;

/**
 * @param convert receives the result of the command. To convert it by `then` would create a second promise for each command
 * @throws GatewayError STATE_UNAVAILABLE as `WithDeadline` does, or with the error that Redis returned for this command; what
 *   `convert` throws
 */
export type SendCommand = <Value>(
  command: RedisCommand,
  convert: (result: unknown) => Value | Promise<Value>,
) => Promise<Value>;

/** A command whose result is not known yet. */
class QueuedCommand {
  readonly command: RedisCommand;
  readonly #onResult: (result: unknown) => void;
  readonly reject: (error: unknown) => void;

  constructor(command: RedisCommand, onResult: (result: unknown) => void, reject: (error: unknown) => void) {
    this.command = command;
    this.#onResult = onResult;
    this.reject = reject;
  }

  resolve(result: unknown): void {
    try {
      this.#onResult(result);
    } catch (thrown) {
      this.reject(thrown);
    }
  }
}

/**
 * Collects commands until the end of the current tick: commands issued by promise callbacks that are already due belong
 * to the same batch.
 *
 * @param maxBatchSize how many commands Redis may execute without serving other clients
 */
export function createCommandBatcher(
  executeBatch: ExecuteBatch,
  withDeadline: WithDeadline,
  maxBatchSize: number,
): SendCommand {
  let queue: QueuedCommand[] = [];

  function sendQueue(): void {
    const commands = queue;
    queue = [];
    let batch: QueuedCommand[] = [];
    let characters = 0;
    for (const queued of commands) {
      batch.push(queued);
      for (const arg of queued.command.args) characters += typeof arg === 'number' ? 0 : arg.length;
      if (batch.length < maxBatchSize && characters < maxCharacters) continue;
      send(batch);
      batch = [];
      characters = 0;
    }
    if (batch.length > 0) send(batch);
  }

  function send(batch: readonly QueuedCommand[]): void {
    withDeadline(() => executeBatch(batch.map(({ command }) => command))).then(
      (results) => {
        if (results.length < batch.length) send(batch.slice(results.length)); // earlier results were large
        for (let index = 0; index < results.length; index++) {
          const result = results[index];
          if (result instanceof Error) batch[index]?.reject(stateUnavailable(new Error(reasonOf(result))));
          else batch[index]?.resolve(result);
        }
      },
      (thrown: unknown) => {
        for (const { reject } of batch) reject(thrown);
      },
    );
  }

  return (command, convert) =>
    new Promise((resolve, reject) => {
      if (queue.length === 0) process.nextTick(sendQueue);
      queue.push(new QueuedCommand(command, (result) => resolve(convert(result)), reject));
    });
}

/** Whether a command has changed its value: the result is `OK` of SET, or 1 of our own commands. */
export const tookEffect = (result: unknown): boolean => result === 'OK' || result === 1;

/** Sends a command and awaits its answer. */
export type WithDeadline = <Answer>(send: () => Promise<Answer>) => Promise<Answer>;

/**
 * Limits how long answers of Redis may take. Commands are also sent after a timeout: those that are sent shortly before a
 * frozen server continues are then answered in time (ADR 67).
 *
 * The returned function throws GatewayError STATE_UNAVAILABLE; after a timeout the command may still be executed.
 */
export function createDeadline(timeoutMs: number): WithDeadline {
  /** Oldest first. Answered calls stay until no older one waits. */
  const calls: WaitingCall[] = [];
  let waiting = 0;
  /** One timer for all calls: for the oldest one, or for one that was answered since it was armed. */
  let timer: NodeJS.Timeout | undefined;

  function add(call: WaitingCall): void {
    while (calls[0]?.isAnswered) calls.shift();
    calls.push(call);
    waiting += 1;
    if (timer) timer.ref();
    else timer = setTimeout(onTimer, timeoutMs);
  }

  function onAnswer(call: WaitingCall): void {
    call.isAnswered = true;
    waiting -= 1;
    if (waiting === 0) timer?.unref(); // it must not keep the process running
  }

  function onTimer(): void {
    timer = undefined;
    const nowMs = performance.now();
    for (let [call] = calls; call; [call] = calls) {
      if (!call.isAnswered && call.timeoutAtMs > nowMs) {
        timer = setTimeout(onTimer, call.timeoutAtMs - nowMs);
        return;
      }
      calls.shift();
      if (!call.isAnswered) setImmediate(call.fail); // after data that has already arrived: see `withTimeout`
    }
  }

  const unavailable = (error: unknown) => stateUnavailable(new Error(reasonOf(error)));

  return (send) => {
    let answered: ReturnType<typeof send>;
    try {
      answered = send();
    } catch (error) {
      return Promise.reject(unavailable(error)); // nothing was sent
    }
    return new Promise((resolve, reject) => {
      const fail = () => reject(unavailable(new TimeoutError(`no answer within ${timeoutMs} ms`)));
      const call = { timeoutAtMs: performance.now() + timeoutMs, isAnswered: false, fail };
      add(call);
      answered.then(
        (answer) => {
          onAnswer(call);
          resolve(answer);
        },
        (thrown: unknown) => {
          onAnswer(call);
          reject(unavailable(thrown));
        },
      );
    });
  };
}

interface WaitingCall {
  /** Milliseconds of `performance.now()`. */
  readonly timeoutAtMs: number;
  isAnswered: boolean;
  readonly fail: () => void;
}

/** The answer did not arrive in time. */
class TimeoutError extends Error {}

/**
 * The answer to a command, if it arrives in time.
 *
 * When the timer fires, data that has already arrived is read first. After a stall of this process (of 100 ms, say) the
 * event loop runs timers before it reads sockets, and would otherwise treat an answer that came in time as late.
 */
export function withTimeout<Answer>(ms: number, command: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new TimeoutError(`no answer within ${ms} ms`));
    const timer = setTimeout(() => setImmediate(fail), ms);
    command.then(
      (answer) => {
        clearTimeout(timer);
        resolve(answer);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** The reason of a failure as text. The error itself is not passed on, because it contains the command with its values. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || String('code' in error ? error.code : error.name); // an AggregateError has no message
}

/**
 * Corks connections until the end of the current tick, so that everything written to one of them leaves in a single
 * system call. Call the returned function before each write.
 *
 * @param connections returns those that may be written to; called once per tick
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
