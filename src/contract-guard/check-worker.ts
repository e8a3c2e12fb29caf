/**
 * The owner of the worker thread that checks large messages, so that they do not delay requests. The thread starts with the first
 * message, and again after it has ended. It gets one message at a time, so that a message which ends it takes no other one with it.
 * What waits is bounded in messages and bytes, and shared fairly: no tenant keeps the messages of others from being checked.
 */

import { Worker } from 'node:worker_threads';
import type { ContractOptions } from '../contract/contract.ts';
import type { Deviation } from '../contract/deviation.ts';
import type { CheckableMessage } from './check-message.ts';

export interface CheckWorker {
  /**
   * Checks a message in the thread.
   *
   * @returns the deviations from each contract; `undefined` if too much waits, or if the thread ends or does not answer in time
   */
  check(
    message: CheckableMessage,
    judges: readonly ThreadJudge[],
    priority: CheckPriority,
  ): Promise<readonly (readonly Deviation[])[] | undefined>;
  /** Ends the thread. */
  stop(): Promise<void>;
}

interface CheckPriority {
  readonly tenant: string;
  /** Until when a request waits for the result: milliseconds of `performance.now()`. `undefined` for checks that can be skipped. */
  readonly awaitedUntilMs?: number | undefined;
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
  /** Of waiting messages. */
  readonly maxChecks: number;
  readonly maxBytes: number;
  /** For one message, the start of the thread included. Longer ones end the thread. Milliseconds. */
  readonly timeoutMs: number;
}

const defaultLimits: WorkerLimits = { maxChecks: 16, maxBytes: 16 * 1024 * 1024, timeoutMs: 5_000 };

/** The heap of the thread: a body of 1 MiB becomes at most some 20 MB of objects. */
const resourceLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16 };

interface WaitingCheck extends CheckPriority {
  readonly message: CheckableMessage;
  readonly judges: readonly ThreadJudge[];
  settle(deviations: ThreadReply['deviations']): void;
}

interface RunningCheck {
  readonly id: number;
  readonly check: WaitingCheck;
  readonly timer: NodeJS.Timeout;
}

/** @param createThread by default the thread of check-thread.ts */
export function createCheckWorker(
  { maxChecks, maxBytes, timeoutMs }: WorkerLimits = defaultLimits,
  createThread: () => Worker = startThread,
): CheckWorker {
  const waiting: WaitingCheck[] = [];
  let running: RunningCheck | undefined;
  let thread: Worker | undefined;
  let nextId = 0;
  let isStopped = false;
  /** Whose message was sent to the thread last. */
  let lastTenant: string | undefined;

  /** Skips checks until the rest is within the limits. */
  function shed(): void {
    skipExpired();
    while (waiting.length > maxChecks) skip(lastOfLargestShare(waiting, () => 1));
    while (sum(waiting, sizeOf) > maxBytes) skip(lastOfLargestShare(waiting, sizeOf));
  }

  /** Skips checks whose request has stopped waiting. */
  function skipExpired(): void {
    const now = performance.now();
    for (const check of waiting.filter(({ awaitedUntilMs = now }) => awaitedUntilMs < now)) skip(check);
  }

  function skip(check: WaitingCheck | undefined): void {
    if (!check) return;
    waiting.splice(waiting.indexOf(check), 1);
    check.settle(undefined);
  }

  function sendNext(): void {
    if (running) return;
    skipExpired();
    const check = nextCheck(waiting, lastTenant);
    if (!check) {
      thread?.unref();
      return;
    }
    waiting.splice(waiting.indexOf(check), 1);
    lastTenant = check.tenant;
    const current = thread ?? start();
    if (!current) {
      check.settle(undefined);
      setImmediate(sendNext);
      return;
    }
    thread = current;
    const id = nextId++;
    running = { id, check, timer: setTimeout(() => abandon(current), timeoutMs) };
    const body = new Uint8Array(check.message.content.body); // a copy, which moves to the thread
    const judges = check.judges.map(({ hash, options }) => ({ hash, options })); // compiled schemas cannot be cloned
    const request: ThreadRequest = { id, judges, message: withBody(check.message, body) };
    current.ref();
    current.postMessage(request, [body.buffer]);
  }

  function end(deviations: ThreadReply['deviations']): void {
    const ended = running;
    running = undefined;
    if (!ended) return;
    clearTimeout(ended.timer);
    ended.check.settle(deviations);
  }

  /** The running check has no result; the next one starts another thread. */
  function abandon(ended: Worker): void {
    if (thread !== ended) return;
    thread = undefined;
    void ended.terminate();
    end(undefined);
    sendNext();
  }

  /** @returns `undefined` if no thread can be created */
  function start(): Worker | undefined {
    let started: Worker;
    try {
      started = createThread();
    } catch {
      return undefined;
    }
    started.on('message', ({ id, deviations }: ThreadReply) => {
      if (running?.id !== id) return;
      end(deviations);
      sendNext();
    });
    started.on('error', () => abandon(started));
    started.on('exit', () => abandon(started));
    return started;
  }

  return {
    check: (message, judges, priority) =>
      new Promise((settle) => {
        if (isStopped) return settle(undefined);
        waiting.push({ message, judges, ...priority, settle });
        sendNext();
        shed();
      }),
    async stop() {
      isStopped = true;
      for (const check of waiting.splice(0)) check.settle(undefined);
      const current = thread;
      if (!current) return;
      abandon(current);
      await current.terminate();
    },
  };
}

const isAwaited = ({ awaitedUntilMs }: WaitingCheck) => awaitedUntilMs !== undefined;
const sizeOf = ({ message }: WaitingCheck) => message.content.body.length;
const sum = (checks: readonly WaitingCheck[], weigh: (check: WaitingCheck) => number) =>
  checks.reduce((total, check) => total + weigh(check), 0);

/** Those for which a request waits go first; among equals, another tenant than the last one. */
function nextCheck(
  waiting: readonly WaitingCheck[],
  lastTenant: string | undefined,
): WaitingCheck | undefined {
  const awaited = waiting.filter(isAwaited);
  const first = awaited.length > 0 ? awaited : waiting;
  return first.find(({ tenant }) => tenant !== lastTenant) ?? first[0];
}

/** Checks that can be skipped go first; among equals, the last one of the tenant with the largest share. */
function lastOfLargestShare(
  waiting: readonly WaitingCheck[],
  weigh: (check: WaitingCheck) => number,
): WaitingCheck | undefined {
  const unawaited = waiting.filter((check) => !isAwaited(check));
  const shares = Object.groupBy(unawaited.length > 0 ? unawaited : waiting, ({ tenant }) => tenant);
  const [largest] = Object.values(shares)
    .flatMap((share) => (share ? [share] : []))
    .toSorted((one, other) => sum(other, weigh) - sum(one, weigh));
  return largest?.at(-1);
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
