/**
 * The owner of the worker thread that checks large messages, so that they do not delay requests. The thread starts with the first
 * message, and again after it has ended. Its queue is bounded in messages and bytes, and each check in time.
 */

import { Worker } from 'node:worker_threads';
import type { ContractOptions } from '../contract/contract.ts';
import type { Deviation } from '../contract/deviation.ts';
import type { CheckableMessage } from './check-message.ts';

export interface CheckWorker {
  /**
   * Checks a message in the thread.
   *
   * @returns the deviations from each contract; `undefined` if the thread is full, has ended, or did not answer in time
   */
  check(
    message: CheckableMessage,
    judges: readonly ThreadJudge[],
  ): Promise<readonly (readonly Deviation[])[] | undefined>;
  /** Ends the thread. */
  stop(): Promise<void>;
}

interface ThreadJudge {
  readonly hash: string;
  readonly options: ContractOptions;
}

export interface ThreadRequest {
  readonly id: number;
  readonly judges: readonly ThreadJudge[];
  readonly message: CheckableMessage;
}

export interface ThreadReply {
  readonly id: number;
  /** `undefined` if the check failed. */
  readonly deviations: readonly (readonly Deviation[])[] | undefined;
}

interface WorkerLimits {
  readonly maxChecks: number;
  readonly maxBytes: number;
  /** From the beginning of the check, the start of the thread included. Longer ones end the thread. Milliseconds. */
  readonly timeoutMs: number;
}

const defaultLimits: WorkerLimits = { maxChecks: 16, maxBytes: 16 * 1024 * 1024, timeoutMs: 5_000 };

/** The heap of the thread: a body of 1 MiB becomes at most some 20 MB of objects. */
const resourceLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16 };

interface RunningCheck {
  readonly bytes: number;
  readonly timer: NodeJS.Timeout;
  settle(deviations: ThreadReply['deviations']): void;
}

/** @param createThread by default the thread of check-thread.ts */
export function createCheckWorker(
  { maxChecks, maxBytes, timeoutMs }: WorkerLimits = defaultLimits,
  createThread: () => Worker = startThread,
): CheckWorker {
  const running = new Map<number, RunningCheck>();
  let thread: Worker | undefined;
  let bytes = 0;
  let nextId = 0;

  function end(id: number, deviations: ThreadReply['deviations']): void {
    const check = running.get(id);
    if (!check) return;
    running.delete(id);
    bytes -= check.bytes;
    clearTimeout(check.timer);
    if (running.size === 0) thread?.unref();
    check.settle(deviations);
  }

  /** All running checks have no result; the next one starts another thread. */
  function abandon(ended: Worker): void {
    if (thread !== ended) return;
    thread = undefined;
    for (const id of [...running.keys()]) end(id, undefined);
    void ended.terminate();
  }

  function start(): Worker {
    const started = createThread();
    started.on('message', ({ id, deviations }: ThreadReply) => end(id, deviations));
    started.on('error', () => abandon(started));
    started.on('exit', () => abandon(started));
    return started;
  }

  return {
    check(message, judges) {
      const body = new Uint8Array(message.content.body); // a copy, which moves to the thread
      if (running.size === maxChecks || bytes + body.length > maxBytes) return Promise.resolve(undefined);
      thread ??= start();
      const current = thread;
      const id = nextId++;
      return new Promise((settle) => {
        const timer = setTimeout(() => abandon(current), timeoutMs);
        running.set(id, { bytes: body.length, timer, settle });
        bytes += body.length;
        current.ref();
        const contracts = judges.map(({ hash, options }) => ({ hash, options })); // compiled schemas cannot be cloned
        const request: ThreadRequest = {
          id,
          judges: contracts,
          message: withBody(message, body),
        };
        current.postMessage(request, [body.buffer]);
      });
    },
    async stop() {
      const current = thread;
      if (!current) return;
      abandon(current);
      await current.terminate();
    },
  };
}

function withBody(message: CheckableMessage, body: Uint8Array): CheckableMessage {
  switch (message.direction) {
    case 'request':
      return { ...message, content: { ...message.content, body } };
    case 'response':
      return { ...message, content: { ...message.content, body } };
  }
}

/** The sources run as TypeScript in a checkout, and compiled in the package. */
function startThread(): Worker {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const script = new URL(`./check-thread.${extension}`, import.meta.url);
  const thread = new Worker(script, { resourceLimits, execArgv: [], stdout: true, stderr: true });
  thread.unref();
  return thread;
}
