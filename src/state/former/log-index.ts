/**
 * The index of a slice of the request log: which chunk contains which fingerprints. The stores append one entry for each chunk
 * and bucket: the position of the chunk (3 bytes), the number of fingerprints (2 bytes), and the fingerprints (4 bytes each), all
 * of them little-endian.
 */

const headerBytes = 5;
const fingerprintBytes = 4;

/** The entry without the position of the chunk, which only the store knows. */
export function entryWithoutPosition(fingerprints: Buffer): Buffer {
  const entry = Buffer.allocUnsafe(2 + fingerprints.length);
  entry.writeUInt16LE(fingerprints.length / fingerprintBytes);
  fingerprints.copy(entry, 2);
  return entry;
}

export function indexEntry(position: number, fingerprints: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(3);
  bytes.writeUIntLE(position, 0, 3);
  return Buffer.concat([bytes, entryWithoutPosition(fingerprints)]);
}

/** The positions of the chunks that contain a fingerprint, each one once. An incomplete last entry is ignored. */
export function positionsOf(index: Buffer, fingerprint: number): ReadonlySet<number> {
  const positions = new Set<number>();
  for (const { position, start, end } of entriesIn(index))
    for (let at = start; at < end; at += fingerprintBytes)
      if (index.readInt32LE(at) === fingerprint) positions.add(position);
  return positions;
}

/** Where the fingerprints of each entry are. */
function* entriesIn(index: Buffer) {
  for (let at = 0; at + headerBytes <= index.length; ) {
    const start = at + headerBytes;
    const end = start + index.readUInt16LE(at + 3) * fingerprintBytes;
    if (end > index.length) return;
    yield { position: index.readUIntLE(at, 3), start, end };
    at = end;
  }
}
