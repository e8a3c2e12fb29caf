/** How many messages one instance sends to an endpoint at the same time, and when the others are tried again. */

import { createLinkedList, type LinkedList } from '../request/linked-list.ts';

export interface EndpointGate {
  /**
   * Asks to send a message. Waits for an attempt in progress to end, if that is expected soon.
   *
   * @param signal ends the wait
   */
  enter(endpoint: string, signal: AbortSignal): GateDecision | Promise<GateDecision>;
}

export type GateDecision =
  /** @member leave must be called after the attempt */
  | { readonly kind: 'send'; readonly leave: (succeeded: boolean) => void }
  /** Other messages are being sent. @member inMs when it is probably the turn of this one */
  | { readonly kind: 'busy'; readonly inMs: number }
  /** The last attempts have failed, and another one is under way. */
  | { readonly kind: 'failing' };

/** For an endpoint that works. */
const maxConcurrent = 8;
/** After so many failures in a row, messages are sent one at a time, so that an endpoint that hangs does not occupy the instance. */
const failuresUntilFailing = 3;
/** A message that probably has to wait longer goes back to its queue, so that it does not occupy the instance. Milliseconds. */
const maxExpectedMs = 250;
/** Until a message that waits nevertheless goes back. Milliseconds. */
const maxWaitMs = 1_000;
/** With those that are being sent, half of what one tenant may occupy: the rest remains for its other endpoints. */
const maxWaiting = 24;
/** Between two looks at a message of a busy endpoint. Milliseconds. */
const minBusyMs = 1_000;
const maxBusyMs = 300_000;
/** The duration of an attempt until one has ended, and the weight of each new one in the average. Milliseconds. */
const firstAverageMs = 100;
const averageWeight = 0.3;
/** How many attempts of a busy endpoint are counted to measure the pace, and for how long at most. Milliseconds. */
const countedAttempts = 128;
const maxCountingMs = 10_000;
/** Messages are expected to go out sooner than measured, so that the endpoint does not wait for them. */
const optimism = 0.5;

interface Endpoint {
  sending: number;
  failures: number;
  /** Of the attempts. Milliseconds. */
  averageMs: number;
  /** From one attempt to the next while messages went back: longer than the attempts explain if this instance is busy. Milliseconds. */
  paceMs: number;
  /** The attempts that have ended since messages went back. */
  counted: { readonly sinceMs: number; count: number } | undefined;
  /** The turn of the last message that went back. Each one gets a later turn, so that a long queue is not searched again and again. */
  turnAtMs: number;
  readonly waiting: LinkedList<(decision: GateDecision) => void>;
}

/**
 * The number of endpoints is bounded by the settings of the clients, because URLs are matched by their origin.
 *
 * @param now milliseconds on a monotonic clock
 */
export function createEndpointGate(now: () => number): EndpointGate {
  const endpoints = new Map<string, Endpoint>();

  function send(endpoint: Endpoint): GateDecision {
    const startedAtMs = now();
    endpoint.sending += 1;
    return {
      kind: 'send',
      leave(succeeded) {
        endpoint.sending -= 1;
        endpoint.failures = succeeded ? 0 : endpoint.failures + 1;
        endpoint.averageMs += averageWeight * (now() - startedAtMs - endpoint.averageMs);
        countAttempt(endpoint);
        admitWaiting(endpoint);
      },
    };
  }

  function countAttempt(endpoint: Endpoint): void {
    const { counted } = endpoint;
    if (!counted) return;
    counted.count += 1;
    if (counted.count < countedAttempts) return;
    endpoint.paceMs = (optimism * (now() - counted.sinceMs)) / counted.count;
    endpoint.counted = undefined;
  }

  function admitWaiting(endpoint: Endpoint): void {
    for (let next = endpoint.waiting.first(); next; next = endpoint.waiting.first()) {
      if (hasRoom(endpoint)) next(send(endpoint));
      else if (isFailing(endpoint)) next({ kind: 'failing' });
      else return;
    }
  }

  function goBack(endpoint: Endpoint): GateDecision {
    const sinceMs = endpoint.counted?.sinceMs ?? Number.NEGATIVE_INFINITY;
    if (now() - sinceMs > maxCountingMs) endpoint.counted = { sinceMs: now(), count: 0 };
    endpoint.turnAtMs = Math.max(endpoint.turnAtMs, now()) + timePerMessage(endpoint);
    return { kind: 'busy', inMs: Math.min(maxBusyMs, Math.max(minBusyMs, endpoint.turnAtMs - now())) };
  }

  function wait(endpoint: Endpoint, signal: AbortSignal): Promise<GateDecision> {
    return new Promise((resolve) => {
      const giveUp = () => end(goBack(endpoint));
      const timer = setTimeout(giveUp, maxWaitMs);
      const leaveList = endpoint.waiting.append(end);
      function end(decision: GateDecision): void {
        leaveList();
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        resolve(decision);
      }
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  return {
    enter(name, signal) {
      const endpoint = endpoints.get(name) ?? createEndpoint();
      endpoints.set(name, endpoint);
      if (hasRoom(endpoint)) return send(endpoint);
      if (isFailing(endpoint)) return { kind: 'failing' };
      const expectedMs = (endpoint.waiting.size() + 1) * timePerMessage(endpoint);
      const goesBack = expectedMs > maxExpectedMs || endpoint.waiting.size() >= maxWaiting || signal.aborted;
      return goesBack ? goBack(endpoint) : wait(endpoint, signal);
    },
  };
}

const createEndpoint = (): Endpoint => ({
  sending: 0,
  failures: 0,
  averageMs: firstAverageMs,
  paceMs: 0,
  counted: undefined,
  turnAtMs: 0,
  waiting: createLinkedList(),
});

const isFailing = ({ failures }: Endpoint) => failures >= failuresUntilFailing;

const hasRoom = (endpoint: Endpoint) => endpoint.sending < (isFailing(endpoint) ? 1 : maxConcurrent);

/** Milliseconds. */
const timePerMessage = ({ averageMs, paceMs }: Endpoint) => Math.max(paceMs, averageMs / maxConcurrent);
