/** Puts the pieces of a body together as they come. */

/** What has come so far. */
export interface BodyBuffer {
  /** Takes the next piece. @returns how many bytes there are now */
  append(piece: Buffer): number;
  /** All that has come. */
  toBuffer(): Buffer;
  /** It is of no use any more: its room is given back, whoever still knows of it. */
  discard(): void;
}

/**
 * Nothing yet.
 *
 * Pieces are copied behind one another: kept one by one, a body that is sent in chunks of one byte takes a hundred times
 * its size.
 */
export function createBodyBuffer(): BodyBuffer {
  let storage: Buffer = emptyBuffer;
  let size = 0;
  return {
    append(piece) {
      const begin = size;
      size += piece.length;
      if (begin === 0)
        storage = piece; // nearly every body comes in one
      else if (size <= storage.length) piece.copy(storage, begin);
      else storage = Buffer.concat([storage.subarray(0, begin), piece], 2 * size);
      return size;
    },
    toBuffer: () => storage.subarray(0, size),
    discard() {
      storage = emptyBuffer;
      size = 0;
    },
  };
}

const emptyBuffer = Buffer.alloc(0);
