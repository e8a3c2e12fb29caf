/** Room for all bodies that are on their way: when it is full, whoever has been sending for longest is turned away. */

import { createLinkedList } from '../request/linked-list.ts';

/** A body that is on its way. */
export interface BodyAllocation {
  /** More of it has come. */
  grow(bytes: number): void;
  /** It is there, or will never be. */
  release(): void;
}

export interface BodyMemoryBudget {
  /** @param evict called at most once, if there is no room for it any more; it has left then */
  register(evict: () => void): BodyAllocation;
}

/** Empty. @param maxBytes of all bodies together */
export function createBodyMemoryBudget(maxBytes: number): BodyMemoryBudget {
  /** How each is turned away. */
  const allocations = createLinkedList<() => void>();
  let total = 0;

  return {
    register(evict) {
      let bytes = 0;
      let isInside = true;
      const exit = allocations.append(() => {
        leave();
        evict();
      });
      const leave = () => {
        if (!exit()) return;
        isInside = false;
        total -= bytes;
      };
      return {
        grow(more) {
          if (!isInside) return;
          bytes += more;
          total += more;
          while (total > maxBytes) allocations.first()?.();
        },
        release: leave,
      };
    },
  };
}
