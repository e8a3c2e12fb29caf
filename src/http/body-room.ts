/** Room for all bodies that are on their way: when it is full, whoever has been sending for longest is turned away. */

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
  const inside = new Map<Place, { bytes: number; readonly turnAway: () => void }>(); // in the order in which they came
  let total = 0;

  function leave(place: Place): void {
    total -= inside.get(place)?.bytes ?? 0;
    inside.delete(place);
  }

  function makeRoom(): void {
    const [oldest] = inside;
    if (!oldest) return;
    const [place, { turnAway }] = oldest;
    leave(place);
    turnAway();
  }

  return {
    enter(turnAway) {
      const place: Place = {
        grow(bytes) {
          const body = inside.get(place);
          if (!body) return;
          body.bytes += bytes;
          total += bytes;
          while (total > maxBytes) makeRoom();
        },
        leave: () => leave(place),
      };
      inside.set(place, { bytes: 0, turnAway });
      return place;
    },
  };
}
