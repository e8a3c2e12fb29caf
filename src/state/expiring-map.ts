/** A map whose entries can expire. */

/** How many entries each write looks at, to drop the expired ones that nobody asks for any more. */
const lookedAtPerWrite = 4;

interface Entry<Value> {
  readonly value: Value;
  /** On the clock of the map; `Infinity` if the entry lives for ever. */
  readonly expiresMs: number;
}

/** Values under names, each for a time. */
export interface ExpiringMap<Value> {
  /** The value, or `undefined` if there is none or it has expired. */
  read(key: string): Value | undefined;
  /** @param ttlMs how long the value lives; for ever if left out */
  write(key: string, value: Value, ttlMs?: number): void;
  remove(key: string): void;
  /** How many entries are held, expired ones included that are not dropped yet. */
  size(): number;
}

/**
 * An empty map.
 *
 * Expired entries are dropped when they are read, and bit by bit by the writes: each looks at a few entries in turn,
 * so that after a quarter as many writes as there are entries all of them have been looked at, and no write is slow.
 *
 * @param now milliseconds on any clock that does not run backwards
 */
export function createExpiringMap<Value>(now: () => number): ExpiringMap<Value> {
  const entries = new Map<string, Entry<Value>>();
  let round = entries.entries();

  const sweep = () => {
    const nowMs = now();
    for (let looked = 0; looked < lookedAtPerWrite; looked++) {
      const { value: found } = round.next();
      if (!found) {
        round = entries.entries();
        return;
      }
      if (found[1].expiresMs <= nowMs) entries.delete(found[0]);
    }
  };

  return {
    read(key) {
      const entry = entries.get(key);
      if (!entry) return undefined;
      if (entry.expiresMs > now()) return entry.value;
      entries.delete(key);
      return undefined;
    },
    write(key, value, ttlMs = Number.POSITIVE_INFINITY) {
      entries.set(key, { value, expiresMs: now() + ttlMs });
      sweep();
    },
    remove: (key) => void entries.delete(key),
    size: () => entries.size,
  };
}
