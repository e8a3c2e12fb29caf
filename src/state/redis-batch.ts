/**
 * Sends all commands issued in one tick to Redis as one batch, with a deadline for the answer. A batch costs the client,
 * the kernel and Redis about as much as a single command (ADR 65).
 */

import type { Writable } from 'node:stream';
import { stateUnavailable } from '../request/errors.ts';
import type { Fence } from './ports.ts';
import { maxCharacters } from './redis-scripts.ts';

/** A command on one key. */
export interface RedisCommand {
  readonly name: string;
  readonly key: string;
  readonly args: readonly (string | number | Buffer)[];
  /** Its key and known values precede the other arguments. */
  readonly fence?: Fence | undefined;
  /** A second key in the same slot. Its position precedes the other arguments. */
  readonly otherKey?: string | undefined;
}

/**
 * Executes commands in their order; may stop early, but not before the first.
 *
 * @returns for each executed command its result or an error
 */
export type ExecuteBatch = (commands: readonly RedisCommand[]) => Promise<readonly unknown[]>;

/** @throws GatewayError STATE_UNAVAILABLE as `WithDeadline` does, or with the error that Redis returned for this command */
export type SendCommand = (command: RedisCommand) => Promise<unknown>;

interface QueuedCommand extends RedisCommand, PromiseWithResolvers<unknown> {}

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
    for (const command of commands) {
      batch.push(command);
      for (const arg of command.args) characters += typeof arg === 'number' ? 0 : arg.length;
      if (batch.length < maxBatchSize && characters < maxCharacters) continue;
      send(batch);
      batch = [];
      characters = 0;
    }
    if (batch.length > 0) send(batch);
  }

  function send(batch: readonly QueuedCommand[]): void {
    withDeadline(() => executeBatch(batch)).then(
      (results) => onResults(batch, results),
      (thrown: unknown) => {
        for (const { reject } of batch) reject(thrown);
      },
    );
  }

  function onResults(batch: readonly QueuedCommand[], results: readonly unknown[]): void {
    if (results.length < batch.length) send(batch.slice(results.length));
    for (const [index, result] of results.entries()) {
      const command = batch[index];
      if (result instanceof Error) command?.reject(stateUnavailable(new Error(reasonOf(result))));
      else command?.resolve(result);
    }
  }

  return (command) => {
    const queued = { ...command, ...Promise.withResolvers<unknown>() };
    if (queue.length === 0) process.nextTick(sendQueue);
    queue.push(queued);
    return queued.promise;
  };
}

/** Sends a command and awaits its answer. */
export type WithDeadline = <Answer>(send: () => Promise<Answer>) => Promise<Answer>;

/**
 * Limits how long answers of Redis may take. Commands are also sent after a timeout: those that are sent shortly before a
 * frozen server continues are then answered in time (ADR 67).
 *
 * The returned function throws GatewayError STATE_UNAVAILABLE; after a timeout the command may still be executed.
 */
export function createDeadline(timeoutMs: number): WithDeadline {
  const unavailable = (error: unknown) => stateUnavailable(new Error(reasonOf(error)));
  return (send) => {
    try {
      return withTimeout(timeoutMs, send()).catch((error: unknown) => {
        throw unavailable(error);
      });
    } catch (error) {
      return Promise.reject(unavailable(error)); // nothing was sent
    }
  };
}

/** The answer did not arrive in time. */
export class TimeoutError extends Error {}

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
