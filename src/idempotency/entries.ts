/** The entries in the shared state: each step of one is a compare-and-set, so that of two who decide one is first. */

import type { KeyValues } from '../state/ports.ts';
import { type Entry, parsed, released, releasedForMs, written } from './entry.ts';

/** What stands under an id. */
export interface Stored {
  readonly raw: string;
  /** `undefined` if it cannot be read: then nobody knows what it was. */
  readonly entry: Entry | undefined;
}

/** Every operation throws GatewayError STATE_UNAVAILABLE; what should have been written is then perhaps written. */
export interface Entries {
  /** `undefined` if there is none. */
  read(id: string): Promise<Stored | undefined>;
  /** @param ttlMs how long it lives; for ever if left out, here and below @returns whether there was none before */
  begin(id: string, entry: Entry, ttlMs?: number): Promise<boolean>;
  /** Begins what was given back and still stands there. @returns whether it did */
  beginAgain(id: string, entry: Entry, ttlMs?: number): Promise<boolean>;
  /** @returns what stands there now, if what stood there was still `raw` */
  replace(id: string, raw: string, next: Entry, ttlMs?: number): Promise<string | undefined>;
  /** Gives it back: the next one to look finds none. @returns whether what stood there was still `raw` */
  release(id: string, raw: string): Promise<boolean>;
}

const keyOf = (id: string) => `ledger:entry:${id}`;

export function createEntries(keyValues: KeyValues): Entries {
  return {
    async read(id) {
      const raw = await keyValues.read(keyOf(id));
      return raw === undefined || raw === released ? undefined : { raw, entry: parsed(raw) };
    },
    begin: (id, entry, ttlMs) => keyValues.writeIfAbsent(keyOf(id), written(entry), ttlMs),
    beginAgain: (id, entry, ttlMs) => keyValues.replace(keyOf(id), released, written(entry), ttlMs),
    async replace(id, raw, next, ttlMs) {
      const text = written(next);
      return (await keyValues.replace(keyOf(id), raw, text, ttlMs)) ? text : undefined;
    },
    release: (id, raw) => keyValues.replace(keyOf(id), raw, released, releasedForMs),
  };
}
