/** The index of everything that is being sent or in doubt, so that nothing is overlooked because nobody repeats it. */

import type { Sets } from '../state/ports.ts';

/** Each throws GatewayError STATE_UNAVAILABLE. */
export interface OpenEntries {
  add(id: string): Promise<void>;
  remove(id: string): Promise<void>;
  ids(): Promise<readonly string[]>;
}

/** In as many parts as an id can begin with letters, so that they spread over a cluster. */
const parts = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const partOf = (id: string) => `ledger:open:${id.charAt(0)}`;

export function createOpenEntries(sets: Sets): OpenEntries {
  return {
    add: (id) => sets.add(partOf(id), id),
    remove: (id) => sets.remove(partOf(id), id),
    ids: async () => (await Promise.all([...parts].map((part) => sets.members(partOf(part))))).flat(),
  };
}
