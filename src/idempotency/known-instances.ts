/** The other instances that share the state and that this one has seen. After a loss, it waits for their registrations. */

import { parseRegistration } from './registration.ts';

export interface KnownInstances {
  ids(): readonly string[];
  /** Milliseconds since 1970; `undefined` for an instance that only others have seen. */
  lastSeen(instance: string): number | undefined;
  /** Adds instances that another one knows. They may have ended. */
  add(instances: readonly string[]): void;
  /**
   * Adds the instances that have registered.
   *
   * @returns whether a running one does not know this instance yet
   */
  note(live: ReadonlyMap<string, string>): boolean;
  /** Forgets the instances that have had no lease for `endedMs`. @returns whether there were any */
  removeEnded(live: ReadonlyMap<string, string>): boolean;
  /** Forgets all instances without a lease. */
  retain(live: ReadonlyMap<string, string>): void;
}

interface Renewal {
  readonly renewal: number;
  /** Milliseconds of `performance.now()`. */
  readonly firstSeenMs: number;
}

/** Instances renew their leases every second. After this time without a renewal, one is dead or suspended. Milliseconds. */
const stalledMs = 2_500;

/** An instance without a lease may only be suspended. After this time it counts as ended. Milliseconds. */
const endedMs = 20_000;

export function createKnownInstances(ownId: string): KnownInstances {
  const lastSeen = new Map<string, number | undefined>();
  let renewals: ReadonlyMap<string, Renewal> = new Map();
  /** Since when each known instance has had no lease: milliseconds of `performance.now()`. */
  let absentSince: ReadonlyMap<string, number> = new Map();

  return {
    ids: () => [...lastSeen.keys()],
    lastSeen: (instance) => lastSeen.get(instance),
    add(instances) {
      for (const instance of instances)
        if (instance !== ownId) lastSeen.set(instance, lastSeen.get(instance));
    },
    note(live) {
      const nowMs = performance.now();
      const next = new Map<string, Renewal>();
      let isUnknown = false;
      for (const [instance, text] of live) {
        const registration = parseRegistration(text);
        if (!registration || instance === ownId) continue;
        lastSeen.set(instance, Date.now());
        const { renewal } = registration;
        const last = renewals.get(instance);
        const latest = last?.renewal === renewal ? last : { renewal, firstSeenMs: nowMs };
        next.set(instance, latest);
        const isStalled = nowMs - latest.firstSeenMs > stalledMs;
        if (!registration.peers.includes(ownId) && !isStalled) isUnknown = true;
      }
      renewals = next;
      return isUnknown;
    },
    removeEnded(live) {
      const nowMs = performance.now();
      const absent = [...lastSeen.keys()].filter((instance) => !live.has(instance));
      absentSince = new Map(absent.map((instance) => [instance, absentSince.get(instance) ?? nowMs]));
      const ended = absent.filter((instance) => nowMs - (absentSince.get(instance) ?? nowMs) > endedMs);
      for (const instance of ended) lastSeen.delete(instance);
      return ended.length > 0;
    },
    retain(live) {
      for (const instance of [...lastSeen.keys()]) if (!live.has(instance)) lastSeen.delete(instance);
    },
  };
}
