/**
 * The queue of checks, which run behind the requests: at the end of the turn of the event loop that sent them (ADR 110). While the
 * process is busy, checks wait. When the queue is full, or a check has waited for too long, it is skipped and counted.
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
  /** Of the request: the context loses it when the request ends. */
  readonly body: Buffer;
  /** Of the bank; `undefined` to check the request. */
  readonly response: PisResponse | undefined;
  /** What a request was already found to violate in its own contract, because that is enforced. */
  readonly own: readonly Deviation[] | undefined;
}

export interface CheckQueue {
  addRequest(environment: GuardedEnvironment, request: PisRequest, own?: readonly Deviation[]): void;
  addResponse(environment: GuardedEnvironment, request: PisRequest, response: PisResponse): void;
  /** Checks what waits, for at most `sliceMs`. */
  drain(): Remaining;
  /** From now on, messages are checked behind the turn in which they were added. */
  start(): void;
  stop(): void;
  /** Skips what waits. */
  shedAll(): void;
}

/** What `drain` leaves. `later`: the process is busy, or a contract is not compiled yet. */
type Remaining = 'nothing' | 'more' | 'later';

interface CheckQueueDependencies {
  /** Must not throw. @returns false if the check cannot run yet; it stays in the queue */
  readonly check: (message: QueuedCheck) => boolean;
  readonly skip: (environment: string, direction: Direction, reason: SkipReason) => void;
  /** Whether the process is so busy that checks must wait. */
  readonly isBusy: () => boolean;
  readonly limits?: QueueLimits;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

interface QueueLimits {
  readonly maxChecks: number;
  /** Bytes of all bodies. */
  readonly maxBytes: number;
}

const defaultLimits: QueueLimits = { maxChecks: 2_000, maxBytes: 32 * 1024 * 1024 };
/** How long a check waits while the process is busy. Milliseconds. */
const maxAgeMs = 60_000;
/** After which checks that had to wait are tried again. Milliseconds. */
const retryMs = 100;
/** How long checks run before the event loop turns: requests wait for no longer. Milliseconds. */
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
  let immediate: NodeJS.Immediate | undefined;
  let retry: NodeJS.Timeout | undefined;

  function add(
    environment: GuardedEnvironment,
    request: PisRequest,
    response: PisResponse | undefined,
    own: readonly Deviation[] | undefined,
  ): void {
    const size = (response ?? request).body.length;
    if (count === maxChecks || bytes + size > maxBytes) {
      skip(environment.name, response ? 'response' : 'request', 'shed');
      return;
    }
    const body = response ? emptyBody : request.body;
    slots[(first + count) % maxChecks] = { environment, request, body, response, own };
    count += 1;
    bytes += size;
    if (isStarted && !retry) immediate ??= setImmediate(drainBehindTurn);
  }

  function removeFirst({ response, body }: QueuedCheck): void {
    bytes -= (response?.body ?? body).length;
    slots[first] = undefined;
    first = (first + 1) % maxChecks;
    count -= 1;
  }

  function shedFirst(message: QueuedCheck): void {
    skip(message.environment.name, message.response ? 'response' : 'request', 'shed');
    removeFirst(message);
  }

  function drain(): Remaining {
    if (isBusy()) {
      shedOlderThan(now() - maxAgeMs);
      return count === 0 ? 'nothing' : 'later';
    }
    const untilMs = now() + sliceMs;
    for (let message = slots[first]; message; message = slots[first]) {
      if (!check(message)) return 'later';
      removeFirst(message);
      if (now() >= untilMs) break;
    }
    return count === 0 ? 'nothing' : 'more';
  }

  /** @param timeMs on the clock of `arrivedAtMs` */
  function shedOlderThan(timeMs: number): void {
    for (let message = slots[first]; message && message.request.arrivedAtMs < timeMs; message = slots[first])
      shedFirst(message);
  }

  function drainBehindTurn(): void {
    immediate = undefined;
    retry = undefined;
    const remaining = drain();
    if (remaining === 'more') immediate = setImmediate(drainBehindTurn);
    if (remaining === 'later') retry = setTimeout(drainBehindTurn, retryMs).unref();
  }

  return {
    addRequest: (environment, request, own) => add(environment, request, undefined, own),
    addResponse: (environment, request, response) => add(environment, request, response, undefined),
    drain,
    start() {
      isStarted = true;
      drainBehindTurn();
    },
    stop() {
      isStarted = false;
      clearImmediate(immediate);
      clearTimeout(retry);
      immediate = undefined;
      retry = undefined;
    },
    shedAll: () => shedOlderThan(Number.POSITIVE_INFINITY),
  };
}
