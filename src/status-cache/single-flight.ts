/**
 * Single flight: one fetch for all equal reads at the same time. Within an instance they share a promise; across
 * instances, the holder of a lease in the shared state fetches, and the others wait until the cached payment changes.
 */

import { randomUUID } from 'node:crypto';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import type { KeyValues } from '../state/ports.ts';

export interface SingleFlight {
  /**
   * Runs `lead`, or joins the flight of this name that is in progress: its `result` is the leader's. A flight that may last beyond
   * the deadline of the caller is not joined: the leader may have arrived later, or with a longer deadline before a reload.
   *
   * @param deadlineAtMs of the caller: milliseconds of `performance.now()`
   */
  run<Value>(
    name: string,
    deadlineAtMs: number,
    lead: () => Promise<Value>,
  ): { readonly joined: boolean; readonly result: Promise<Value> };
  /**
   * Runs `fetch` in one instance only; the others wait until `lookup` finds its result.
   *
   * @param paymentKey the cached payment, whose changes are notified
   * @param name       of the flight of this payment; flights of one name exclude each other
   */
  runAcrossInstances<Value>(paymentKey: string, name: string, steps: FlightSteps<Value>): Promise<Value>;
}

interface FlightSteps<Value> {
  /** Returns what another instance has stored, or `undefined`. */
  readonly lookup: () => Promise<Value | undefined>;
  readonly fetch: () => Promise<Value>;
  /** Called before the wait for another instance. */
  readonly onWait: () => void;
  /** How long to wait for another instance: milliseconds of `performance.now()`. */
  readonly waitUntilMs: number;
}

interface Flight {
  readonly result: Promise<unknown>;
  /** That of its leader. */
  readonly deadlineAtMs: number;
}

/** Requests that arrive together may overtake each other: so much later may the deadline of the leader be. Milliseconds. */
const maxLaterMs = 100;
/** The lease of an instance that dies expires after this time, which limits the wait of the others. Milliseconds. */
const flightLeaseMs = 3_000;

/** @param changes notifications of changed payments */
export function createSingleFlight(keyValues: KeyValues, changes: ChangeWaiter): SingleFlight {
  const flights = new Map<string, Flight>();

  function run<Value>(name: string, deadlineAtMs: number, lead: () => Promise<Value>) {
    const running = flights.get(name);
    // All flights of one name have one type: the name contains the kind of the result.
    if (running && running.deadlineAtMs <= deadlineAtMs + maxLaterMs)
      return { joined: true, result: running.result as Promise<Value> };
    const result = lead().finally(() => {
      if (flights.get(name) === flight) flights.delete(name); // not a later one with an earlier deadline
    });
    const flight: Flight = { result, deadlineAtMs };
    flights.set(name, flight);
    return { joined: false, result };
  }

  async function runAcrossInstances<Value>(
    paymentKey: string,
    name: string,
    { lookup, fetch, onWait, waitUntilMs }: FlightSteps<Value>,
  ): Promise<Value> {
    const lease = createFlightLease(keyValues, `${paymentKey}:flight:${name}`);
    const tryTake = () => Promise.all([lease.take(), lookup()]); // one batch: Redis looks up after it has given the lease
    let [taken, found] = await tryTake();
    while (taken !== true) {
      if (found !== undefined) return found;
      if (taken === 'unknown' || performance.now() > waitUntilMs) return fetch();
      onWait();
      await changes.nextChange(paymentKey);
      found = await lookup();
      if (found === undefined) [taken, found] = await tryTake();
    }
    const renewal = setInterval(lease.renew, flightLeaseMs / 3);
    try {
      return found ?? (await fetch());
    } finally {
      clearInterval(renewal);
      void lease.release().then(() => changes.notify(paymentKey)); // the response does not wait for the release
    }
  }

  return { run, runAcrossInstances };
}

/**
 * A lease that one instance holds at a time. Nothing here fails: if it cannot be renewed or released, it expires.
 *
 * Only its holder renews or releases it: after an instance was paused for longer than the lease, another one may hold it.
 */
function createFlightLease(keyValues: KeyValues, name: string) {
  const holder = randomUUID();
  return {
    take: () => keyValues.writeIfAbsent(name, holder, flightLeaseMs).catch(() => 'unknown' as const),
    renew: () => void keyValues.replace(name, holder, holder, flightLeaseMs).catch(() => {}),
    release: () => keyValues.removeIf(name, holder).catch(() => false),
  };
}
