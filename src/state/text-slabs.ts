/**
 * Texts outside of the V8 heap, in slabs of equal chunks for each size class, as memcached has them.
 *
 * In the heap, a text that is stored for hours would be copied twice by young collections and visited by every full one. A slab is
 * one object for hundreds of texts, and the garbage collector does not visit its content.
 */

export interface TextSlabs {
  /** @returns the handle of the stored text; `undefined` if it is too short or too long for a chunk */
  add(text: string): TextHandle | undefined;
  /** The stored text, with U+FFFD in place of lone surrogates. */
  read(handle: TextHandle): string;
  /** Frees the chunk. The handle must not be used again. */
  remove(handle: TextHandle): void;
}

/** The number of a chunk times the number of size classes, plus the index of its size class. */
export type TextHandle = number;

/** A chunk for a shorter text would cost more than it saves. V8 does not move much longer texts either. Bytes. */
const minTextBytes = 128;
const maxTextBytes = 16_384;
const slabBytes = 256 * 1024;
/** The length of the text, at the beginning of its chunk. Bytes. */
const lengthBytes = 4;

/** Bytes, in multiples of 8. A chunk is at most about a quarter longer than the text and its length. */
const chunkSizes: readonly number[] = (() => {
  const sizes: number[] = [];
  for (let size = minTextBytes; size < (maxTextBytes + lengthBytes) * 1.25; size *= 1.25)
    sizes.push(Math.ceil(size / 8) * 8);
  return sizes;
})();

interface SizeClass {
  readonly chunkBytes: number;
  readonly chunksPerSlab: number;
  /** Empty slabs are kept: the next texts have similar sizes. */
  readonly slabs: Buffer[];
  /** The numbers of the free chunks. */
  readonly free: number[];
}

export function createTextSlabs(): TextSlabs {
  const classes = chunkSizes.map(
    (chunkBytes): SizeClass => ({
      chunkBytes,
      chunksPerSlab: Math.floor(slabBytes / chunkBytes),
      slabs: [],
      free: [],
    }),
  );

  return {
    add(text) {
      const bytes = Buffer.byteLength(text);
      if (bytes < minTextBytes || bytes > maxTextBytes) return undefined;
      const which = classes.findIndex(({ chunkBytes }) => chunkBytes >= bytes + lengthBytes);
      const sizeClass = classes[which];
      if (!sizeClass) return undefined;
      const chunk = sizeClass.free.pop() ?? addSlab(sizeClass);
      const { slab, at } = locate(sizeClass, chunk);
      slab.writeUInt32LE(bytes, at);
      slab.write(text, at + lengthBytes, bytes);
      return chunk * classes.length + which;
    },
    read(handle) {
      const { slab, at } = locate(classOf(handle), chunkOf(handle));
      const start = at + lengthBytes;
      return slab.toString('utf8', start, start + slab.readUInt32LE(at));
    },
    remove: (handle) => void classOf(handle).free.push(chunkOf(handle)),
  };

  function classOf(handle: TextHandle): SizeClass {
    const sizeClass = classes[handle % classes.length];
    if (!sizeClass) throw new Error('not a handle of a text');
    return sizeClass;
  }

  function chunkOf(handle: TextHandle): number {
    return Math.floor(handle / classes.length);
  }
}

/** @returns the number of the first new chunk; the others are added to the free ones */
function addSlab({ slabs, chunksPerSlab, free }: SizeClass): number {
  const first = slabs.length * chunksPerSlab;
  slabs.push(Buffer.allocUnsafeSlow(slabBytes));
  for (let chunk = first + chunksPerSlab - 1; chunk > first; chunk--) free.push(chunk);
  return first;
}

function locate(
  { slabs, chunkBytes, chunksPerSlab }: SizeClass,
  chunk: number,
): { slab: Buffer; at: number } {
  const slab = slabs[Math.floor(chunk / chunksPerSlab)];
  if (!slab) throw new Error('not a handle of a text');
  return { slab, at: (chunk % chunksPerSlab) * chunkBytes };
}
