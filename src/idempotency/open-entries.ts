/** The index of everything that is being sent or in doubt, so that nothing is overlooked because nobody repeats it. */

import type { Sets } from '../state/ports.ts';
import type { Entries } from './entries.ts';
import { isOpen } from './entry.ts';

/**
 * Each throws GatewayError STATE_UNAVAILABLE; what should have been done is then perhaps done, even later.
 *
 * A name is that of one attempt (`nameOf`): once it is closed it never opens again, so that whoever removes it late
 * takes nothing away from the next one.
 */
export interface OpenEntries {
  add(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  names(): Promise<readonly string[]>;
}

/**
 * One attempt at one entry. Operators resolve it by this name, and never mean another one. The attempt comes first: an id
 * can begin with a hyphen, and would be an option on the command line.
 */
export const nameOf = (id: string, attempt: string): string => `${attempt}.${id}`;

/** What a name says; an attempt holds no full stop. */
export function namedBy(name: string): { readonly id: string; readonly attempt: string } {
  const [attempt = '', id = ''] = name.split('.');
  return { id, attempt };
}

/** In as many parts as a name can begin with digits, so that they spread over a cluster. */
const parts = '0123456789abcdef';
const partOf = (name: string) => `ledger:open:${name.charAt(0)}`;

export function createOpenEntries(sets: Sets): OpenEntries {
  return {
    add: (name) => sets.add(partOf(name), name),
    remove: (name) => sets.remove(partOf(name), name),
    names: async () => (await Promise.all([...parts].map((part) => sets.members(partOf(part))))).flat(),
  };
}

/**
 * Takes a name out of the index because its attempt is closed. An attempt that had lost its entry may begin it anew in
 * between, as a doubt: then the name goes back.
 */
export async function drop(name: string, open: OpenEntries, entries: Entries): Promise<void> {
  await open.remove(name);
  const { id, attempt } = namedBy(name);
  const entry = (await entries.read(id))?.entry;
  if (entry?.attempt === attempt && isOpen(entry)) await open.add(name);
}
