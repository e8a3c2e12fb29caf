/** Limits the memory of all request bodies that are being received. Beyond it, the oldest bodies are evicted. */

import { createLinkedList } from '../request/linked-list.ts';

/** The memory of one body. */
export interface BodyAllocation {
  grow(bytes: number): void;
  release(): void;
}

export interface BodyMemoryBudget {
  /** @param evict called at most once, after the allocation was released, if the memory is used up */
  register(evict: () => void): BodyAllocation;
}

/** @param maxBytes of all bodies together */
export function createBodyMemoryBudget(maxBytes: number): BodyMemoryBudget {
  const evictions = createLinkedList<() => void>();
  let total = 0;

  return {
    register(evict) {
      let bytes = 0;
      let isReleased = false;
      const remove = evictions.append(() => {
        release();
        evict();
      });
      const release = () => {
        if (!remove()) return;
        isReleased = true;
        total -= bytes;
      };
      return {
        grow(more) {
          if (isReleased) return;
          bytes += more;
          total += more;
          while (total > maxBytes) evictions.first()?.();
        },
        release,
      };
    },
  };
}
