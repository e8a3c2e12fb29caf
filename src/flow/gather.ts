/** Puts the pieces of a body together as they come. */

/** What has come so far. */
export interface Gathered {
  /** Takes the next piece. @returns how many bytes there are now */
  add(piece: Buffer): number;
  /** All that has come. */
  whole(): Buffer;
  /** It is of no use any more: its room is given back, whoever still knows of it. */
  drop(): void;
}

/**
 * Nothing yet.
 *
 * Pieces are copied behind one another: kept one by one, a body that is sent in chunks of one byte takes a hundred times
 * its size.
 */
export function gather(): Gathered {
  let room: Buffer = nothing;
  let size = 0;
  return {
    add(piece) {
      const begin = size;
      size += piece.length;
      if (begin === 0)
        room = piece; // nearly every body comes in one
      else if (size <= room.length) piece.copy(room, begin);
      else room = Buffer.concat([room.subarray(0, begin), piece], 2 * size);
      return size;
    },
    whole: () => room.subarray(0, size),
    drop() {
      room = nothing;
      size = 0;
    },
  };
}

const nothing = Buffer.alloc(0);
