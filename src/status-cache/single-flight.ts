/**
 * One question to the bank for all who ask the same: within an instance by sharing a promise, across instances by a
 * lease in the shared state, whose holder asks while the others wait for the document to change.
 */

import { randomUUID } from 'node:crypto';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import type { KeyValues } from '../state/ports.ts';

export interface SingleFlight {
  /** Runs `lead`, or shares the run that is under way under this name. */
  run<Value>(
    name: string,
    lead: () => Promise<Value>,
  ): { readonly joined: boolean; readonly landing: Promise<Value> };
  /**
   * Asks the bank by `ask` as the only instance, or waits until `look` finds what another instance has brought.
   *
   * @param key  the payment's document, whose changes are announced
   * @param look comes back with what is there meanwhile, or `undefined`
   */
  runAcrossInstances<Value>(key: string, name: string, steps: FlightSteps<Value>): Promise<Value>;
}

interface FlightSteps<Value> {
  readonly lookup: () => Promise<Value | undefined>;
  readonly fetch: () => Promise<Value>;
  /** Until when to wait for another instance: milliseconds of `performance.now()`. */
  readonly waitUntilMs: number;
}

/** A holder that dies gives the lease up after this time; nobody waits for it in vain for longer. Milliseconds. */
const leaseMs = 3_000;

/** @param changes of documents, which whoever waits for another instance looks out for */
export function createSingleFlight(keyValues: KeyValues, changes: ChangeWaiter): SingleFlight {
  const flights = new Map<string, Promise<unknown>>();

  function run<Value>(name: string, lead: () => Promise<Value>) {
    const running = flights.get(name);
    // All flights of one name have one type: the name says which kind of answer it brings.
    if (running) return { joined: true, landing: running as Promise<Value> };
    const landing = lead().finally(() => flights.delete(name));
    flights.set(name, landing);
    return { joined: false, landing };
  }

  async function runAcrossInstances<Value>(
    key: string,
    name: string,
    { lookup, fetch, waitUntilMs }: FlightSteps<Value>,
  ): Promise<Value> {
    const lease = leaseOf(keyValues, `${key}:flight:${name}`);
    for (let taken = await lease.take(); taken !== true; taken = await lease.take()) {
      if (taken === 'unknown' || performance.now() > waitUntilMs) return fetch();
      await changes.nextChange(key);
      const found = await lookup();
      if (found !== undefined) return found;
    }
    const renewal = setInterval(lease.renew, leaseMs / 3);
    try {
      return (await lookup()) ?? (await fetch());
    } finally {
      clearInterval(renewal);
      void lease.release().then(() => changes.notify(key)); // the answer need not wait for that
    }
  }

  return { run, runAcrossInstances };
}

/** Held by one instance at a time. Nothing here fails: a lease that cannot be renewed or released ends by itself. */
function leaseOf(keyValues: KeyValues, name: string) {
  const holder = randomUUID();
  return {
    take: () => keyValues.writeIfAbsent(name, holder, leaseMs).catch(() => 'unknown' as const),
    renew: () => void keyValues.replace(name, holder, holder, leaseMs).catch(() => {}),
    release: () => keyValues.remove(name).catch(() => {}),
  };
}
