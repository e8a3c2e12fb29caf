/** The request log in tables of the state file. Its writes run in the transactions of the state, its reads outside of them. */

import type { LogWrite, RequestLog } from '../ports.ts';
import { indexEntry } from './log-index.ts';

/** Former releases ignore these tables. `expires` is in milliseconds since 1970. */
export const requestLogSchema = `
CREATE TABLE IF NOT EXISTS log_slice (slice INTEGER PRIMARY KEY, expires REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS log_entry (slice INTEGER, part TEXT, name ANY, data ANY NOT NULL, PRIMARY KEY (slice, part, name))
  STRICT, WITHOUT ROWID;
`;

/** A row of a result, and what of a prepared statement is used here. */
type Row = Readonly<Record<string, unknown>>;
type Value = string | number | Uint8Array;
interface Statement {
  run(...values: Value[]): unknown;
  all(...values: Value[]): readonly Row[];
}

/** Entries of expired slices that one write deletes: more than it can add. */
const deletedPerWrite = 64;

export interface RequestLogTables {
  /** Must run in a transaction. */
  append(slice: number, write: LogWrite): readonly number[];
  readChunk(slice: number, position: number): Buffer | undefined;
  readIndex(slice: number, bucket: number): Buffer;
  readBytes(slice: number, part: string): ReadonlyMap<string, Buffer>;
  readCounters(slice: number): ReadonlyMap<string, number>;
}

/** @param now milliseconds since 1970; never runs backwards */
export function createRequestLogTables(
  prepare: (sql: string) => Statement,
  now: () => number,
): RequestLogTables {
  const isLive = 'slice IN (SELECT slice FROM log_slice WHERE slice = ? AND expires > ?)';
  const keepSlice = prepare(`INSERT INTO log_slice VALUES (?, ?)
    ON CONFLICT (slice) DO UPDATE SET expires = excluded.expires`);
  const put = prepare(`INSERT INTO log_entry VALUES (?, ?, ?, ?)
    ON CONFLICT (slice, part, name) DO UPDATE SET data = excluded.data`);
  const add = prepare(`INSERT INTO log_entry VALUES (?, 'counters', ?, ?)
    ON CONFLICT (slice, part, name) DO UPDATE SET data = data + excluded.data`);
  const find = prepare(`SELECT data FROM log_entry WHERE ${isLive} AND part = ? AND name = ?`);
  const list = prepare(`SELECT name, data FROM log_entry WHERE ${isLive} AND part = ? ORDER BY name`);
  const lastChunk = prepare(`SELECT max(name) AS data FROM log_entry WHERE ${isLive} AND part = 'chunks'`);
  const expired = prepare(`SELECT slice, part, name FROM log_entry
    WHERE slice IN (SELECT slice FROM log_slice WHERE expires <= ?) LIMIT ${deletedPerWrite}`);
  const remove = prepare('DELETE FROM log_entry WHERE slice = ? AND part = ? AND name = ?');
  const removeIfExpired = prepare(
    'DELETE FROM log_entry WHERE slice IN (SELECT slice FROM log_slice WHERE slice = ? AND expires <= ?)',
  );
  const removeEmptySlices = prepare(`DELETE FROM log_slice WHERE expires <= ?
    AND NOT EXISTS (SELECT 1 FROM log_entry WHERE log_entry.slice = log_slice.slice)`);

  const dataOf = (slice: number, part: string, name: string | number) =>
    find.all(slice, now(), part, name)[0]?.data;
  const countChunks = (slice: number): number => {
    const last = lastChunk.all(slice, now())[0]?.data;
    return typeof last === 'number' ? last + 1 : 0;
  };

  function deleteExpired(): void {
    for (const { slice, part, name } of expired.all(now()))
      remove.run(Number(slice), String(part), typeof name === 'number' ? name : String(name));
    removeEmptySlices.run(now());
  }

  function apply(slice: number, { writer, number, chunk, index, values, counters }: LogWrite): void {
    put.run(slice, 'writers', writer, number);
    if (chunk) {
      const position = countChunks(slice);
      put.run(slice, 'chunks', position, chunk);
      for (const [bucket, fingerprints] of index)
        put.run(slice, `index:${bucket}`, position, indexEntry(position, fingerprints));
    }
    for (const { group, name, value } of values) put.run(slice, group, name, value);
    for (const { name, by } of counters) add.run(slice, name, by);
  }

  return {
    append(slice, write) {
      deleteExpired();
      removeIfExpired.run(slice, now());
      const isRepeated = dataOf(slice, 'writers', write.writer) === write.number;
      keepSlice.run(slice, now() + write.ttlMs);
      if (!isRepeated) apply(slice, write);
      return write.counters.map(({ name }) => Number(dataOf(slice, 'counters', name) ?? 0));
    },
    readChunk: (slice, position) => asBuffer(dataOf(slice, 'chunks', position)),
    readIndex: (slice, bucket) =>
      Buffer.concat(list.all(slice, now(), `index:${bucket}`).flatMap(({ data }) => asBuffer(data) ?? [])),
    readBytes: (slice, part) =>
      new Map(
        list
          .all(slice, now(), part)
          .map(({ name, data }) => [String(name), asBuffer(data) ?? empty] as const),
      ),
    readCounters: (slice) =>
      new Map(
        list.all(slice, now(), 'counters').map(({ name, data }) => [String(name), Number(data)] as const),
      ),
  };
}

const empty = Buffer.alloc(0);

const asBuffer = (data: unknown) => (data instanceof Uint8Array ? Buffer.from(data) : undefined);

/** @param read and @param change execute an operation on the open file */
export const createSqliteRequestLog = (
  read: <Result>(operation: (tables: RequestLogTables) => Result) => Promise<Result>,
  change: <Result>(operation: (tables: RequestLogTables) => Result) => Promise<Result>,
): RequestLog => ({
  append: (slice, write) => change((tables) => tables.append(slice, write)),
  readChunks: (slice, positions) =>
    read((tables) => positions.map((position) => tables.readChunk(slice, position))),
  readIndex: (slice, bucket) => read((tables) => tables.readIndex(slice, bucket)),
  readValues: (slice, group) => read((tables) => tables.readBytes(slice, group)),
  readCounters: (slice) => read((tables) => tables.readCounters(slice)),
});
