/**
 * One question to the bank for all who ask the same: within an instance by sharing a promise, across instances by a
 * lease in the shared state, whose holder asks while the others wait for the document to change.
 */

import { randomUUID } from 'node:crypto';
import type { Changes } from '../state/changes.ts';
import type { KeyValues } from '../state/ports.ts';

export interface SharedFlights {
  /** Runs `lead`, or shares the run that is under way under this name. */
  share<Value>(
    name: string,
    lead: () => Promise<Value>,
  ): { readonly joined: boolean; readonly landing: Promise<Value> };
  /**
   * Asks the bank by `ask` as the only instance, or waits until `look` finds what another instance has brought.
   *
   * @param key  the payment's document, whose changes are announced
   * @param look comes back with what is there meanwhile, or `undefined`
   */
  acrossInstances<Value>(key: string, name: string, steps: FlightSteps<Value>): Promise<Value>;
}

interface FlightSteps<Value> {
  readonly look: () => Promise<Value | undefined>;
  readonly ask: () => Promise<Value>;
  /** Until when to wait for another instance: milliseconds of `performance.now()`. */
  readonly untilMs: number;
}

/** A holder that dies gives the lease up after this time; nobody waits for it in vain for longer. Milliseconds. */
const leaseMs = 3_000;

/** @param changes of documents, which whoever waits for another instance looks out for */
export function createSharedFlights(keyValues: KeyValues, changes: Changes): SharedFlights {
  const flights = new Map<string, Promise<unknown>>();

  function share<Value>(name: string, lead: () => Promise<Value>) {
    const running = flights.get(name);
    // All flights of one name have one type: the name says which kind of answer it brings.
    if (running) return { joined: true, landing: running as Promise<Value> };
    const landing = lead().finally(() => flights.delete(name));
    flights.set(name, landing);
    return { joined: false, landing };
  }

  async function acrossInstances<Value>(
    key: string,
    name: string,
    { look, ask, untilMs }: FlightSteps<Value>,
  ): Promise<Value> {
    const lease = leaseOf(keyValues, `${key}:flight:${name}`);
    for (let taken = await lease.take(); taken !== true; taken = await lease.take()) {
      if (taken === 'unknown' || performance.now() > untilMs) return ask();
      await changes.to(key);
      const found = await look();
      if (found !== undefined) return found;
    }
    const renewal = setInterval(lease.renew, leaseMs / 3);
    try {
      return (await look()) ?? (await ask());
    } finally {
      clearInterval(renewal);
      void lease.release().then(() => changes.tell(key)); // the answer need not wait for that
    }
  }

  return { share, acrossInstances };
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
