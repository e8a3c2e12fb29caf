/** The faults that are to strike, in the order they were asked for. */
import type { OperationName } from '../pis/operations.ts';
import { type Fault, type FaultMoment, type FaultScope, faultRows, momentOf } from './faults.ts';

/** A fault that is waiting, and how often it still strikes. */
export interface PendingFault {
  readonly fault: Fault;
  readonly operation: readonly OperationName[] | 'any';
  readonly timesLeft: number;
}

/** What happens to one request: it waits at some moment, and one fault strikes at most. */
export interface FaultDecision {
  readonly delay: { readonly ms: number; readonly moment: FaultMoment } | undefined;
  readonly fault: Fault | undefined;
}

/** Faults come one after the other: the first that fits a request strikes it, and after its last time the next does. */
export interface FaultQueue {
  add(fault: Fault, scope?: FaultScope): void;
  /** Takes what is to strike this request; `undefined` stands for a path that is none of the eight operations. */
  take(operation: OperationName | undefined): FaultDecision;
  pending(): readonly PendingFault[];
  clear(): void;
}

/** A queue with nothing in it. @param now milliseconds on a clock that does not run backwards */
export function createFaultQueue(now: () => number = () => performance.now()): FaultQueue {
  let queue: readonly PendingFault[] = [];
  const arrivals = new WeakMap<Fault, number>();

  /** A rate limit lets pass what is within it: the generic cell rate algorithm, as the gateway's own bucket. */
  function spares(fault: Fault): boolean {
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
      const other = queue.find((one) => fits(one) && one.fault.name !== 'latency' && !spares(one.fault));
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

function delayOf(fault: Fault | undefined): FaultDecision['delay'] {
  if (fault?.name !== 'latency') return undefined;
  return { ms: fault.ms ?? faultRows.latency.defaults.ms, moment: momentOf(fault) };
}
