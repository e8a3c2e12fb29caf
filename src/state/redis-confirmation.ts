/**
 * Sends writes that succeed only when replicas have them, so that a failover does not lose them.
 *
 * WAIT covers only the writes of its own connection, and blocks the commands behind it. These writes therefore have a
 * connection of their own to each master. While one batch is being confirmed, the next commands are collected; they are
 * sent together, with one WAIT (group commit).
 */

import { GatewayError, stateUnavailable } from '../request/errors.ts';
import { UnconfirmedError } from './ports.ts';
import { type RedisCommand, reasonOf, type SendCommand, TimeoutError, withTimeout } from './redis-batch.ts';
import type { ReplicaCounts } from './redis-replicas.ts';

/** A connection to one master. It does not reconnect by itself. */
export interface ConfirmingConnection {
  /** Connects at the first call. @returns `INFO replication` of the master at that time @throws if it cannot connect */
  open(): Promise<string>;
  /** Whether it has been closed or lost. */
  isClosed(): boolean;
  /** Executes commands, and waits at most `waitMs` until replicas have all that was written on this connection. */
  executeAndWait(
    commands: readonly ConfirmedCommand[],
    replicas: number,
    waitMs: number,
  ): Promise<Confirmation>;
  close(): void;
}

export interface ConfirmedCommand extends RedisCommand {
  /** Set if another node of the cluster named this master: with ASK, the slot of the key is about to move to it. */
  readonly redirectedBy?: 'MOVED' | 'ASK';
}

export interface Confirmation {
  /** For each command its result or an error. */
  readonly results: readonly unknown[];
  /** How many replicas have confirmed the commands. */
  readonly confirmedBy: number;
}

/** The masters of all keys. */
export interface ConfirmingMasters {
  /** A name of the master that stores this key; `undefined` while it is not known. */
  masterOf(key: string): string | undefined;
  /** @param timeoutMs how long its slowest command may take */
  newConfirmingConnection(master: string, timeoutMs: number): ConfirmingConnection;
}

export interface ConfirmedWrites {
  /** @throws UnconfirmedError @throws GatewayError STATE_UNAVAILABLE as `SendCommand` does */
  readonly send: SendCommand;
  /** Which of the last writes were not confirmed, as a sentence; `undefined` if all were. */
  problem(): string | undefined;
}

interface ConfirmedWritesDependencies {
  readonly masters: ConfirmingMasters;
  readonly replicas: ReplicaCounts;
  /** Sends a command that no replica has to confirm. */
  readonly sendUnconfirmed: SendCommand;
  /** How long a command may wait for its confirmation, in milliseconds. */
  readonly timeoutMs: number;
  /** How long the answer of the master may take in addition, in milliseconds. */
  readonly answerMs: number;
}

interface QueuedCommand extends ConfirmedCommand, PromiseWithResolvers<unknown> {
  /** Milliseconds of `performance.now()`. */
  readonly confirmBeforeMs: number;
}

/** How many commands Redis may execute without serving other clients. */
const maxBatchSize = 64;

export function createConfirmedWrites(dependencies: ConfirmedWritesDependencies): ConfirmedWrites {
  const { masters, replicas, sendUnconfirmed, timeoutMs } = dependencies;
  const queues = new Map<string, ConfirmationQueue>();

  const queueOf = (master: string) => {
    const known = queues.get(master);
    if (known) return known;
    const queue = createQueue(master, dependencies, redirect);
    queues.set(master, queue);
    return queue;
  };
  const redirect = (master: string, command: QueuedCommand) => queueOf(master).add(command);

  async function waitUntilKnown(master: string): Promise<void> {
    await withTimeout(timeoutMs, replicas.observed(master)).catch((cause) => {
      throw stateUnavailable(new Error(`the number of replicas is not known (${reasonOf(cause)})`));
    });
  }

  /** Not async: commands that need no confirmation join the batch of this tick. */
  const send: SendCommand = (command, convert) => {
    const master = masters.masterOf(command.key);
    if (master === undefined) return Promise.reject(stateUnavailable(new Error('not connected')));
    const required = replicas.required(master);
    if (required === undefined) return waitUntilKnown(master).then(() => send(command, convert));
    if (required === 0) return sendUnconfirmed(command, convert);
    const confirmBeforeMs = performance.now() + timeoutMs;
    const queued = { ...command, confirmBeforeMs, ...Promise.withResolvers<unknown>() };
    queueOf(master).add(queued);
    return queued.promise.then(convert);
  };

  return {
    send,
    problem: () => [...queues.values()].flatMap((queue) => queue.problem() ?? [])[0],
  };
}

interface ConfirmationQueue {
  add(command: QueuedCommand): void;
  problem(): string | undefined;
}

/** Sends one batch after the other to one master. */
function createQueue(
  master: string,
  { masters, replicas, timeoutMs, answerMs }: ConfirmedWritesDependencies,
  redirect: (master: string, command: QueuedCommand) => void,
): ConfirmationQueue {
  const waiting: QueuedCommand[] = [];
  let isSending = false;
  let connection: ConfirmingConnection | undefined;
  let problem: string | undefined;

  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatchSize);
      try {
        await sendBatch(batch);
      } catch (thrown) {
        connection?.close(); // it may lead to a former master, or its answers may still arrive
        // Commands that waited behind this batch would wait for the same replicas again, and exceed the timeout.
        const error = thrown instanceof GatewayError ? thrown : stateUnavailable(new Error(reasonOf(thrown)));
        for (const { reject } of [...batch, ...waiting.splice(0)]) reject(error);
      }
    }
    isSending = false;
  }

  async function sendBatch(batch: readonly QueuedCommand[]): Promise<void> {
    const required = replicas.required(master);
    if (required === undefined) throw new Error('the number of replicas is not known');
    if (!connection || connection.isClosed()) {
      connection?.close();
      connection = masters.newConfirmingConnection(master, 2 * (timeoutMs + answerMs)); // `withTimeout` below ends first
    }
    const current = connection;
    const waitMs = Math.max(1, Math.ceil((batch[0]?.confirmBeforeMs ?? 0) - performance.now())); // for WAIT, 0 means no limit
    const execute = async () => {
      if (!replicas.isCurrent(master, await current.open())) throw new Error('the master has just changed');
      return current.executeAndWait(batch, required, waitMs);
    };
    const { results, confirmedBy } = await withTimeout(waitMs + answerMs, execute()).catch((thrown) => {
      if (thrown instanceof TimeoutError) return { results: [], confirmedBy: 0 }; // WAIT itself may answer late
      throw thrown;
    });
    problem = confirmedBy < required ? unconfirmed(confirmedBy, required, timeoutMs) : undefined;
    if (confirmedBy < required) throw new UnconfirmedError(confirmedBy, required);
    for (const [index, command] of batch.entries()) settle(command, results[index]);
  }

  function settle(command: QueuedCommand, result: unknown): void {
    if (!(result instanceof Error)) {
      command.resolve(result);
      return;
    }
    const { kind, target } = redirectionOf(result);
    if (target !== undefined && !command.redirectedBy) redirect(target, { ...command, redirectedBy: kind });
    else command.reject(stateUnavailable(new Error(reasonOf(result))));
  }

  return {
    add(command) {
      waiting.push(command);
      if (isSending) return;
      isSending = true;
      process.nextTick(sendAll);
    },
    problem: () => problem,
  };
}

const unconfirmed = (confirmedBy: number, required: number, timeoutMs: number) =>
  `The last payment was refused: only ${confirmedBy} of ${required} Redis replicas confirmed it within ${timeoutMs} ms ` +
  '(state.confirm). Check whether the others are overloaded, frozen or disconnected.';

/** `MOVED 3999 127.0.0.1:6381`: the node has not executed the command, and names the one that will. */
function redirectionOf({ message }: Error) {
  const [, kind, target] = /^(MOVED|ASK) \d+ (\S+)$/.exec(message) ?? [];
  return { kind: kind === 'ASK' ? 'ASK' : 'MOVED', target } as const;
}
