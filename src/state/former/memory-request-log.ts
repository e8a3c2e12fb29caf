/** The request log in the memory of one process. */

import type { LogGroup, LogWrite, RequestLog } from '../ports.ts';
import { indexEntry } from './log-index.ts';

interface Slice {
  /** On the clock of the log. */
  expiresAtMs: number;
  readonly chunks: Buffer[];
  readonly index: Map<number, Buffer[]>;
  readonly values: Readonly<Record<LogGroup, Map<string, Buffer>>>;
  readonly counters: Map<string, number>;
  /** The number of the last write of each writer. */
  readonly lastWrites: Map<string, number>;
}

/** @param now milliseconds on a monotonic clock */
export function createMemoryRequestLog(now: () => number): RequestLog {
  const slices = new Map<number, Slice>();

  function liveSlice(number: number): Slice | undefined {
    for (const [each, { expiresAtMs }] of slices) if (expiresAtMs <= now()) slices.delete(each);
    return slices.get(number);
  }

  function addSlice(number: number): Slice {
    const slice = createSlice();
    slices.set(number, slice);
    return slice;
  }

  return {
    async append(number, write) {
      const slice = liveSlice(number) ?? addSlice(number);
      slice.expiresAtMs = now() + write.ttlMs;
      const isRepeated = slice.lastWrites.get(write.writer) === write.number;
      if (!isRepeated) apply(slice, write);
      return write.counters.map(({ name }) => slice.counters.get(name) ?? 0);
    },
    async readChunks(number, positions) {
      const slice = liveSlice(number);
      return positions.map((position) => slice?.chunks[position]);
    },
    readIndex: async (number, bucket) => Buffer.concat(liveSlice(number)?.index.get(bucket) ?? []),
    readValues: async (number, group) => new Map(liveSlice(number)?.values[group]),
    readCounters: async (number) => new Map(liveSlice(number)?.counters),
  };
}

const createSlice = (): Slice => ({
  expiresAtMs: 0,
  chunks: [],
  index: new Map(),
  values: { dictionaries: new Map(), figures: new Map(), errors: new Map() },
  counters: new Map(),
  lastWrites: new Map(),
});

function apply(slice: Slice, { writer, number, chunk, index, values, counters }: LogWrite): void {
  slice.lastWrites.set(writer, number);
  if (chunk) {
    const position = slice.chunks.push(chunk) - 1;
    for (const [bucket, fingerprints] of index) {
      const entries = slice.index.get(bucket) ?? [];
      slice.index.set(bucket, entries);
      entries.push(indexEntry(position, fingerprints));
    }
  }
  for (const { group, name, value } of values) slice.values[group].set(name, value);
  for (const { name, by } of counters) slice.counters.set(name, (slice.counters.get(name) ?? 0) + by);
}
