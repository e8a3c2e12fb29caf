/** Bodies of messages: the empty one, and the chunks of one that is being received. */

export const emptyBody: Buffer = Buffer.alloc(0);

export interface BodyBuffer {
  /** @returns the number of bytes received so far */
  append(chunk: Buffer): number;
  /** All bytes received so far. */
  toBuffer(): Buffer;
  /** Frees the memory, even if the body buffer is still referenced. */
  discard(): void;
}

/** Copies chunks into one buffer: separate chunks of one byte would take a hundred times their size. */
export function createBodyBuffer(): BodyBuffer {
  let storage: Buffer = emptyBody;
  let size = 0;
  return {
    append(chunk) {
      const offset = size;
      size += chunk.length;
      if (offset === 0)
        storage = chunk; // nearly every body arrives in one chunk
      else if (size <= storage.length) chunk.copy(storage, offset);
      else storage = Buffer.concat([storage.subarray(0, offset), chunk], 2 * size);
      return size;
    },
    toBuffer: () => storage.subarray(0, size),
    discard() {
      storage = emptyBody;
      size = 0;
    },
  };
}
