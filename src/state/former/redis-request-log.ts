/**
 * The request log in Redis. All keys of a slice have one hash tag, so that one command writes to all of them: the chunks and each
 * group of values are hashes, the index is one string for each bucket.
 */

import type { LogWrite, RequestLog } from '../ports.ts';
import type { RedisCommand, SendCommand, WithDeadline } from '../redis-batch.ts';
import { entryWithoutPosition } from './log-index.ts';

/** Reads of bytes; the keys are complete. */
export interface RedisReader {
  getBuffer(key: string): Promise<Buffer | null>;
  hmgetBuffer(key: string, fields: readonly number[]): Promise<readonly (Buffer | null)[]>;
  hgetallBuffer(key: string): Promise<Readonly<Record<string, Buffer>>>;
}

interface RedisRequestLogDependencies {
  readonly prefix: string;
  readonly sendCommand: SendCommand;
  readonly reader: RedisReader;
  readonly withDeadline: WithDeadline;
}

export function createRedisRequestLog({
  prefix,
  sendCommand,
  reader,
  withDeadline,
}: RedisRequestLogDependencies): RequestLog {
  const keyOf = (slice: number, part: string) => `${prefix}requests:{${slice}}:${part}`;
  return {
    append: (slice, write) =>
      sendCommand(
        appendCommand((part) => keyOf(slice, part), write),
        (result) => (Array.isArray(result) ? result.map(Number) : []),
      ),
    async readChunks(slice, positions) {
      if (positions.length === 0) return [];
      const chunks = await withDeadline(() => reader.hmgetBuffer(keyOf(slice, 'chunks'), positions));
      return chunks.map((chunk) => chunk ?? undefined);
    },
    async readIndex(slice, bucket) {
      return (await withDeadline(() => reader.getBuffer(keyOf(slice, `index:${bucket}`)))) ?? empty;
    },
    async readValues(slice, group) {
      return new Map(Object.entries(await withDeadline(() => reader.hgetallBuffer(keyOf(slice, group)))));
    },
    async readCounters(slice) {
      const fields = await withDeadline(() => reader.hgetallBuffer(keyOf(slice, 'counters')));
      const counters = Object.entries(fields).filter(([name]) => name.startsWith(counterPrefix));
      return new Map(counters.map(([name, count]) => [name.slice(counterPrefix.length), Number(count)]));
    },
  };
}

const empty = Buffer.alloc(0);

/** The script stores the number of the last write of each writer in the same hash, under another prefix. */
const counterPrefix = 'counter:';

/** @param keyOf the complete key of a part of the slice */
function appendCommand(
  keyOf: (part: string) => string,
  { writer, number, ttlMs, chunk, index, values, counters }: LogWrite,
): RedisCommand {
  const buckets = [...index];
  return {
    name: 'appendToLog',
    key: keyOf('chunks'),
    otherKeys: [
      keyOf('counters'),
      ...values.map(({ group }) => keyOf(group)),
      ...buckets.map(([bucket]) => keyOf(`index:${bucket}`)),
    ],
    args: [
      Math.max(1, Math.ceil(ttlMs)),
      `writer:${writer}`,
      number,
      chunk ?? '',
      values.length,
      buckets.length,
      ...values.flatMap(({ name, value }) => [name, value]),
      ...buckets.map(([, fingerprints]) => entryWithoutPosition(fingerprints)),
      ...counters.flatMap(({ name, by }) => [counterPrefix + name, by]),
    ],
  };
}
