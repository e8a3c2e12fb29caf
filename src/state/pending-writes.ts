/** Writes that the shared state has not accepted yet, by key. Only the newest of a key counts; it is retried until it succeeds. */

import { done } from './known-results.ts';

export interface PendingWrites<Write> {
  /** Queues this write; replaces a pending one with the same key. */
  add(key: string, write: Write): void;
  /** Queues this write and tries it at once. Never fails. */
  addAndFlush(key: string, write: Write): Promise<void>;
  get(key: string): Write | undefined;
  size(): number;
  /** Tries the pending write of this key, if there is one. @throws what `execute` throws; the write stays pending */
  flushKey(key: string): Promise<void>;
  /** Tries one after the other until one fails; the next call starts after that one. @throws what `execute` throws */
  flush(): Promise<void>;
}

/** Emptied after the write: old tables of the Map keep the slot alive for long (request/linked-list.ts). */
interface Slot<Write> {
  write: Write | undefined;
}

/** @param execute writes to the state; must be idempotent, because a write that timed out is repeated */
export function createPendingWrites<Write extends object | null>(
  execute: (write: Write, key: string) => Promise<void>,
): PendingWrites<Write> {
  const slots = new Map<string, Slot<Write>>();
  const add = (key: string, write: Write) => void slots.set(key, { write });

  function flushKey(key: string): Promise<void> {
    const slot = slots.get(key);
    if (slot?.write === undefined) return Promise.resolve();
    slots.delete(key);
    slots.set(key, slot); // at the end, so that a write that keeps failing does not block the others
    return execute(slot.write, key).then(() => remove(key, slot));
  }

  function remove(key: string, slot: Slot<Write>): void {
    if (slots.get(key) === slot) slots.delete(key); // a newer write stays pending
    slot.write = undefined;
  }

  return {
    add,
    addAndFlush(key, write) {
      const slot: Slot<Write> = { write };
      slots.set(key, slot);
      const written = execute(write, key);
      if (written === done) {
        remove(key, slot);
        return done;
      }
      return written.then(
        () => remove(key, slot),
        () => {}, // stays pending
      );
    },
    get: (key) => slots.get(key)?.write,
    size: () => slots.size,
    flushKey,
    async flush() {
      for (const key of [...slots.keys()]) await flushKey(key);
    },
  };
}
