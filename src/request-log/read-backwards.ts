/** Reads the records of all instances from the request log, the newest first. */

import { fingerprintsByPosition, positionsOf } from '../state/former/log-index.ts';
import type { RequestLog } from '../state/ports.ts';
import {
  type DecodedRecord,
  type Dictionary,
  decodeChunk,
  decodeDictionary,
  encoderOf,
  type RecordHead,
} from './record-decoder.ts';
import { instanceOfEncoder } from './record-encoder.ts';
import { bucketOf, timeBucket } from './search-terms.ts';
import { sliceMs, sliceOf } from './slices.ts';

export interface BackwardQuery {
  /** Only chunks that contain one of each group. */
  readonly fingerprints: readonly (readonly number[])[];
  /** Only requests that were received in this time: milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly newestSlice: number;
  readonly isWanted: (record: RecordHead) => boolean;
}

export interface ReadStep {
  readonly records: readonly { readonly instance: string; readonly record: DecodedRecord }[];
  /** How many chunks were decoded. */
  readonly chunks: number;
  /** All wanted records of requests that were received since this time have been read: milliseconds since 1970. */
  readonly readFromMs: number;
}

type LogReader = Omit<RequestLog, 'append'>;

/** Decoding these takes a few milliseconds, in which the instance serves nothing else. */
const chunksPerStep = 8;
/** Slices whose index is read at the same time. */
const slicesPerRead = 24;

/** @throws GatewayError STATE_UNAVAILABLE */
export async function* readBackwards(log: LogReader, query: BackwardQuery): AsyncGenerator<ReadStep> {
  const { fromMs, newestSlice, isWanted } = query;
  const oldestSlice = sliceOf(fromMs);
  for (let first = newestSlice; first >= oldestSlice; first -= slicesPerRead) {
    const count = Math.min(slicesPerRead, first - oldestSlice + 1);
    const slices = Array.from({ length: count }, (_, index) => first - index);
    const candidates = await Promise.all(slices.map((slice) => candidatesIn(log, slice, query)));
    for (const [index, slice] of slices.entries()) {
      const found = candidates[index] ?? [];
      const dictionaries = found.length > 0 ? await readDictionaries(log, slice) : new Map();
      for (let at = 0; at < found.length; at += chunksPerStep) {
        const end = at + chunksPerStep;
        const positions = found.slice(at, end).map(({ position }) => position);
        const chunks = await log.readChunks(slice, positions);
        const records = chunks.flatMap((chunk) => (chunk ? decode(chunk, dictionaries, isWanted) : []));
        // The requests in the remaining chunks of this slice were received before the end of this second.
        const next = found[end];
        const readFromMs = next ? (next.lastSecond + 1) * 1_000 : slice * sliceMs;
        yield { records, chunks: positions.length, readFromMs: Math.max(readFromMs, slice * sliceMs) };
      }
      yield { records: [], chunks: 0, readFromMs: slice * sliceMs };
    }
  }
}

interface Candidate {
  readonly position: number;
  /** The last second in which one of its requests was received: seconds since 1970. */
  readonly lastSecond: number;
}

/** The chunks that may contain wanted records, those with the newest requests first. */
async function candidatesIn(
  log: LogReader,
  slice: number,
  { fingerprints, fromMs, toMs }: BackwardQuery,
): Promise<readonly Candidate[]> {
  const [times, ...sets] = await Promise.all([
    log.readIndex(slice, timeBucket),
    ...fingerprints.map((group) => positionsOfAny(log, slice, group)),
  ]);
  return [...fingerprintsByPosition(times)]
    .filter(([position]) => sets.every((set) => set.has(position)))
    .filter(([, [first = 0, last = 0]]) => first * 1_000 < toMs && (last + 1) * 1_000 > fromMs)
    .map(([position, [, lastSecond = 0]]) => ({ position, lastSecond }))
    .toSorted((one, other) => other.lastSecond - one.lastSecond);
}

/** The chunks that may contain one of the fingerprints. */
async function positionsOfAny(
  log: LogReader,
  slice: number,
  fingerprints: readonly number[],
): Promise<ReadonlySet<number>> {
  const sets = await Promise.all(
    fingerprints.map(async (each) => positionsOf(await log.readIndex(slice, bucketOf(each)), each)),
  );
  return new Set(sets.flatMap((set) => [...set]));
}

type Dictionaries = ReadonlyMap<string, Dictionary>;

/** The dictionaries of a slice, by the name of their encoder. */
async function readDictionaries(log: LogReader, slice: number): Promise<Dictionaries> {
  const values = await log.readValues(slice, 'dictionaries');
  return new Map(
    [...values].flatMap(([encoder, bytes]) => {
      const dictionary = decodeDictionary(bytes);
      return dictionary ? [[encoder, dictionary] as const] : [];
    }),
  );
}

function decode(chunk: Buffer, dictionaries: Dictionaries, isWanted: (record: RecordHead) => boolean) {
  const encoder = encoderOf(chunk);
  const dictionary = dictionaries.get(encoder ?? '');
  if (encoder === undefined || !dictionary) return [];
  const instance = instanceOfEncoder(encoder);
  return decodeChunk(chunk, dictionary, isWanted).map((record) => ({ instance, record }));
}
