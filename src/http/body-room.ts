/** Room for all bodies that are on their way: when it is full, whoever has been sending for longest is turned away. */

import { createRoll } from '../flow/roll.ts';

/** A body that is on its way. */
export interface Place {
  /** More of it has come. */
  grow(bytes: number): void;
  /** It is there, or will never be. */
  leave(): void;
}

export interface BodyRoom {
  /** @param turnAway called at most once, if there is no room for it any more; it has left then */
  enter(turnAway: () => void): Place;
}

/** Empty. @param maxBytes of all bodies together */
export function createBodyRoom(maxBytes: number): BodyRoom {
  /** How each is turned away. */
  const inside = createRoll<() => void>();
  let total = 0;

  return {
    enter(turnAway) {
      let bytes = 0;
      let isInside = true;
      const exit = inside.enter(() => {
        leave();
        turnAway();
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
          while (total > maxBytes) inside.first()?.();
        },
        leave,
      };
    },
  };
}
