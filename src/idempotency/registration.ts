/** The registration of an instance for a round (loss-guard.ts). It is the value of the instance's lease, which others read. */

import { hash } from 'node:crypto';
import { z } from 'zod';
import { parseStored } from '../state/parse-stored.ts';
import type { StoredEpochs } from './epochs.ts';

const registrationShape = z.object({
  /** The round, identified by the servers of the state and all epochs. */
  round: z.string(),
  /** Changes with every renewal: an instance whose number stays the same is dead or suspended. */
  renewal: z.number(),
  /** Whether this instance accepts new writes in this round. */
  isOpen: z.boolean(),
  /** The other instances that this one has seen. */
  peers: z.array(z.string()).readonly(),
  /**
   * Whether this instance has seen every instance whose writes the state may have lost; while no partition is closed, every
   * instance whose writes it could lose.
   */
  covers: z.boolean(),
  /** Whether this instance remembers all writes of its own that the state should still hold. */
  complete: z.boolean(),
});

export type Registration = Readonly<z.output<typeof registrationShape>>;

/** What a round still waits for. */
export interface RoundProgress {
  /** The instances that may have sent writes and have not registered. */
  readonly missing: readonly string[];
  /** Whether the registered instances remember all writes that the state may have lost. */
  readonly isCovered: boolean;
}

/**
 * @param peers the other instances that this one has seen
 * @param live  the values of all live leases by instance, the own one included
 */
export function progressOf(
  round: string,
  peers: Iterable<string>,
  live: ReadonlyMap<string, string>,
): RoundProgress {
  const registered = new Map<string, Registration>();
  const required = new Set(peers);
  for (const [instance, text] of live) {
    const registration = parseRegistration(text);
    if (!registration) continue; // this instance has not read the state yet, or is of an earlier release
    required.add(instance);
    if (registration.round !== round) continue;
    registered.set(instance, registration);
    for (const peer of registration.peers) required.add(peer);
  }
  const registrations = [...registered.values()];
  const isFinished = registrations.some(({ isOpen }) => isOpen); // that instance knew all others
  return {
    missing: isFinished ? [] : [...required].filter((instance) => !registered.has(instance)),
    isCovered: registrations.some(({ covers }) => covers) && registrations.every(({ complete }) => complete),
  };
}

/**
 * The registration of an instance that covers all writes, and names the new instance: so it was written after the first
 * registration of the new one.
 */
export function introducerOf(
  newInstance: string,
  round: string,
  live: ReadonlyMap<string, string>,
): Registration | undefined {
  for (const text of live.values()) {
    const registration = parseRegistration(text);
    if (registration?.round !== round || !registration.peers.includes(newInstance)) continue;
    if (registration.isOpen && registration.covers) return registration;
  }
  return undefined;
}

export const serializeRegistration = (registration: Registration): string => JSON.stringify(registration);

/** @returns `undefined` if the text is something else */
export const parseRegistration = (text: string): Registration | undefined =>
  parseStored(registrationShape, text);

/**
 * Whether a state has never been used: no epoch shows a write, and no instance has registered.
 *
 * @param live the values of all live leases by instance
 */
export function isNewState(stored: StoredEpochs, live: ReadonlyMap<string, string>): boolean {
  const epochs = [...stored.values()];
  const isUnused = epochs.every((epoch) => !epoch || (epoch.kind === 'first' && epoch.sequence === 0));
  return (
    isUnused && epochs.includes(undefined) && ![...live.values()].some((text) => parseRegistration(text))
  );
}

/** A round is over when a server of the state or an epoch changes. @param identity of the servers */
export function roundOf(identity: string, stored: StoredEpochs): string {
  const names = [...stored].map(([partition, epoch]) => `${partition}${epoch?.epoch}`);
  return hash('sha256', [identity, ...names].join('\n'), 'base64url').slice(0, 16);
}
