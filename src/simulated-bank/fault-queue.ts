/** The pending faults, in the order in which they were injected. */
import type { OperationName } from '../pis/operations.ts';
import { type Fault, type FaultMoment, type FaultScope, faultRows, momentOf } from './faults.ts';

/** A pending fault, and how often it will still be applied. */
export interface PendingFault {
  readonly fault: Fault;
  readonly operation: readonly OperationName[] | 'any';
  readonly timesLeft: number;
}

/** The faults of one request: an optional delay, and at most one other fault. */
export interface FaultsOfRequest {
  readonly delay: { readonly ms: number; readonly moment: FaultMoment } | undefined;
  readonly fault: Fault | undefined;
}

/** Faults apply in order: the first that matches a request is applied, and after its last use the next one. */
export interface FaultQueue {
  add(fault: Fault, scope?: FaultScope): void;
  /** Takes the faults of this request; `undefined` stands for a path that is none of the eight operations. */
  take(operation: OperationName | undefined): FaultsOfRequest;
  pending(): readonly PendingFault[];
  clear(): void;
}

/** @param now milliseconds of a monotonic clock */
export function createFaultQueue(now: () => number = () => performance.now()): FaultQueue {
  let queue: readonly PendingFault[] = [];
  const arrivals = new WeakMap<Fault, number>();

  /** Whether a request is within the fault's rate limit, by the generic cell rate algorithm (ITU-T I.371 annex A). */
  function isWithinRateLimit(fault: Fault): boolean {
    if (fault.name !== 'rate-limit') return false;
    const { perSecond, burst } = { ...faultRows['rate-limit'].defaults, ...fault };
    const arrival = Math.max(arrivals.get(fault) ?? 0, now());
    if (arrival - ((burst - 1) * 1_000) / perSecond > now()) return false;
    arrivals.set(fault, arrival + 1_000 / perSecond);
    return true;
  }

  function use(taken: PendingFault | undefined): void {
    queue = queue.flatMap((one) => {
      if (one !== taken) return [one];
      return one.timesLeft > 1 ? [{ ...one, timesLeft: one.timesLeft - 1 }] : [];
    });
  }

  return {
    add: (fault, { times = Infinity, operation } = {}) => {
      const names = operation === undefined ? 'any' : [operation].flat();
      queue = [...queue, { fault, operation: names, timesLeft: times }];
    },
    take: (operation) => {
      const fits = (one: PendingFault) =>
        one.operation === 'any' || (operation !== undefined && one.operation.includes(operation));
      const delay = queue.find((one) => fits(one) && one.fault.name === 'latency');
      const other = queue.find(
        (one) => fits(one) && one.fault.name !== 'latency' && !isWithinRateLimit(one.fault),
      );
      use(delay);
      use(other);
      return { delay: delayOf(delay?.fault), fault: other?.fault };
    },
    pending: () => queue,
    clear: () => {
      queue = [];
    },
  };
}

function delayOf(fault: Fault | undefined): FaultsOfRequest['delay'] {
  if (fault?.name !== 'latency') return undefined;
  return { ms: fault.ms ?? faultRows.latency.defaults.ms, moment: momentOf(fault) };
}
