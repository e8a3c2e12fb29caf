/**
 * The queue of checks. They run when all requests of a batch were sent, in the same turn of the event loop (ADR 110). While the process
 * is busy, checks wait. If the queue is full, or a check has waited for too long, the check is skipped and counted.
 */

import type { Deviation } from '../contract/deviation.ts';
import { emptyBody } from '../request/body-buffer.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { Direction, SkipReason } from './deviation-counts.ts';
import type { GuardedEnvironment } from './guarded-environments.ts';

/** A message to check. */
export interface QueuedCheck {
  readonly environment: GuardedEnvironment;
  readonly request: PisRequest;
  /** The body of `request`, which the context drops when the request ends. Empty if the response is checked. */
  readonly body: Buffer;
  /** The bank's response; `undefined` if the request is to be checked. */
  readonly response: PisResponse | undefined;
  /** Deviations of the request from the contract of its environment, if `enforce` has checked that already. */
  readonly ownDeviations: readonly Deviation[] | undefined;
}

export interface CheckQueue {
  addRequest(
    environment: GuardedEnvironment,
    request: PisRequest,
    ownDeviations?: readonly Deviation[],
  ): void;
  addResponse(environment: GuardedEnvironment, request: PisRequest, response: PisResponse): void;
  /** Checks queued messages for at most `sliceMs`. */
  drain(): Remaining;
  /** From now on, the queue checks messages when the batch of requests has been sent in which they were added. */
  start(): void;
  stop(): void;
  /** Skips all queued messages. */
  shedAll(): void;
}

/** What is still queued after `drain`. `later`: the process is busy, or a contract is not compiled yet. */
type Remaining = 'nothing' | 'more' | 'later';

interface CheckQueueDependencies {
  /**
   * Must not throw.
   *
   * @param receivedAtMs when the request was received: milliseconds since 1970
   * @returns false if the check cannot run yet; it stays in the queue
   */
  readonly check: (message: QueuedCheck, receivedAtMs: number) => boolean;
  readonly skip: (environment: string, direction: Direction, reason: SkipReason) => void;
  /** Whether the process is so busy that checks must wait. */
  readonly isBusy: () => boolean;
  readonly limits?: QueueLimits;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

interface QueueLimits {
  readonly maxChecks: number;
  /** Of all queued bodies. */
  readonly maxBytes: number;
}

const defaultLimits: QueueLimits = { maxChecks: 2_000, maxBytes: 32 * 1024 * 1024 };
/** How long a check waits while the process is busy. Milliseconds. */
const maxAgeMs = 60_000;
/** After this time, the queue tries again to run checks that had to wait. Milliseconds. */
const retryMs = 100;
/** The longest time that checks take in one turn of the event loop, and so delay requests. Milliseconds. */
const sliceMs = 2;

export function createCheckQueue({
  check,
  skip,
  isBusy,
  limits: { maxChecks, maxBytes } = defaultLimits,
  now = () => performance.now(),
}: CheckQueueDependencies): CheckQueue {
  const slots: (QueuedCheck | undefined)[] = [];
  let first = 0;
  let count = 0;
  let bytes = 0;
  let isStarted = false;
  let isScheduled = false;

  function add(
    environment: GuardedEnvironment,
    request: PisRequest,
    response: PisResponse | undefined,
    ownDeviations: readonly Deviation[] | undefined,
  ): void {
    const size = (response ?? request).body.length;
    if (count === maxChecks || bytes + size > maxBytes) {
      skip(environment.name, response ? 'response' : 'request', 'shed');
      return;
    }
    const body = response ? emptyBody : request.body;
    slots[(first + count) % maxChecks] = { environment, request, body, response, ownDeviations };
    count += 1;
    bytes += size;
    if (!isStarted || isScheduled) return;
    isScheduled = true;
    // The requests of this batch are sent in the first tick. An immediate would take another turn of the event loop, with smaller batches.
    process.nextTick(process.nextTick, drainScheduled);
  }

  function removeFirst({ response, body }: QueuedCheck): void {
    bytes -= (response?.body ?? body).length;
    slots[first] = undefined;
    first = (first + 1) % maxChecks;
    count -= 1;
  }

  function drain(): Remaining {
    if (isBusy()) {
      shedOlderThan(now() - maxAgeMs);
      return count === 0 ? 'nothing' : 'later';
    }
    const startedAtMs = now();
    const sinceEpochMs = Date.now() - startedAtMs;
    for (let message = slots[first]; message; message = slots[first]) {
      if (!check(message, message.request.arrivedAtMs + sinceEpochMs)) return 'later';
      removeFirst(message);
      if (now() - startedAtMs >= sliceMs) break;
    }
    return count === 0 ? 'nothing' : 'more';
  }

  /** @param timeMs on the clock of `request.arrivedAtMs` */
  function shedOlderThan(timeMs: number): void {
    for (
      let message = slots[first];
      message && message.request.arrivedAtMs < timeMs;
      message = slots[first]
    ) {
      skip(message.environment.name, message.response ? 'response' : 'request', 'shed');
      removeFirst(message);
    }
  }

  function drainScheduled(): void {
    isScheduled = false;
    if (!isStarted) return;
    const remaining = drain();
    if (remaining === 'nothing') return;
    isScheduled = true;
    if (remaining === 'more') setImmediate(drainScheduled);
    else setTimeout(drainScheduled, retryMs).unref();
  }

  return {
    addRequest: (environment, request, ownDeviations) => add(environment, request, undefined, ownDeviations),
    addResponse: (environment, request, response) => add(environment, request, response, undefined),
    drain,
    start() {
      isStarted = true;
      drainScheduled();
    },
    stop() {
      isStarted = false;
    },
    shedAll: () => shedOlderThan(Number.POSITIVE_INFINITY),
  };
}
