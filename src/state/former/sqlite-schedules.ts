/** Schedules in tables of the state file. Changes run in the transactions of the state, reads outside of them. */

import type {
  DueChange,
  ListedRecord,
  QueueCounts,
  ScheduledRecord,
  Schedules,
  TakenRecord,
} from './schedules.ts';

/** Former releases ignore these tables. `due` is in milliseconds since 1970; of a leased record it is the end of the lease. */
export const schedulesSchema = `
CREATE TABLE IF NOT EXISTS scheduled_record (key BLOB PRIMARY KEY, version INTEGER NOT NULL, text BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS scheduled_due (queue BLOB, key BLOB, due REAL NOT NULL, leased INTEGER NOT NULL,
  PRIMARY KEY (queue, key)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS scheduled_due_by_time ON scheduled_due (queue, due);
`;

/** A row of a result, and what of a prepared statement is used here. */
type Row = Readonly<Record<string, unknown>>;
interface Statement {
  run(...values: (Buffer | number)[]): unknown;
  all(...values: (Buffer | number)[]): readonly Row[];
}

/** The operations of `Schedules`, synchronously. All but `read`, `isDue`, `list` and `count` must run in a transaction. */
export interface ScheduleTables {
  read(key: string): ScheduledRecord | undefined;
  write(
    key: string,
    version: number,
    text: string | undefined,
    changes: readonly DueChange[],
  ): number | undefined;
  isDue(queue: string): boolean;
  take(queue: string, limit: number, leaseMs: number): readonly TakenRecord[];
  extend(queue: string, key: string, lease: string, leaseMs: number): string | undefined;
  reschedule(key: string, change: DueChange): void;
  promote(from: string, to: string, limit: number): void;
  list(queue: string, limit: number): readonly ListedRecord[];
  count(queue: string): QueueCounts;
}

/** @param now milliseconds since 1970; never runs backwards */
export function createScheduleTables(prepare: (sql: string) => Statement, now: () => number): ScheduleTables {
  const find = prepare('SELECT version, text FROM scheduled_record WHERE key = ?');
  const put = prepare(`INSERT INTO scheduled_record VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, text = excluded.text`);
  const remove = prepare('DELETE FROM scheduled_record WHERE key = ?');
  const findDue = prepare('SELECT due, leased FROM scheduled_due WHERE queue = ? AND key = ?');
  const putDue = prepare(`INSERT INTO scheduled_due VALUES (?, ?, ?, ?)
    ON CONFLICT (queue, key) DO UPDATE SET due = excluded.due, leased = excluded.leased`);
  const removeDue = prepare('DELETE FROM scheduled_due WHERE queue = ? AND key = ?');
  const listDue = prepare('SELECT key FROM scheduled_due WHERE queue = ? AND due <= ? ORDER BY due LIMIT ?');
  const list = prepare('SELECT key FROM scheduled_due WHERE queue = ? ORDER BY due LIMIT ?');
  const counts = prepare(
    'SELECT count(*) AS n, count(*) FILTER (WHERE due <= ?) AS due FROM scheduled_due WHERE queue = ?',
  );

  function read(key: string): ScheduledRecord | undefined {
    const [row] = find.all(Buffer.from(key));
    return row && { version: Number(row.version), text: textOf(row.text) };
  }

  function changeDue(key: string, { queue, inMs, lease }: DueChange): void {
    const [queueBytes, keyBytes] = [Buffer.from(queue), Buffer.from(key)];
    const [entry] = findDue.all(queueBytes, keyBytes);
    const isLeased = entry?.leased === 1 && Number(entry.due) > now();
    if (lease === undefined ? isLeased : leaseIn(entry) !== lease) return;
    if (inMs === undefined) removeDue.run(queueBytes, keyBytes);
    else putDue.run(queueBytes, keyBytes, Math.floor(now() + inMs), 0); // 0 means now
  }

  function lease(queue: string, key: string, leaseMs: number): string {
    const endMs = Math.ceil(now() + leaseMs);
    putDue.run(Buffer.from(queue), Buffer.from(key), endMs, 1);
    return String(endMs);
  }

  return {
    read,
    write(key, version, text, changes) {
      if ((read(key)?.version ?? 0) !== version) return undefined;
      const next = Math.max(version + 1, Math.floor(now()));
      if (text === undefined) remove.run(Buffer.from(key));
      else put.run(Buffer.from(key), next, Buffer.from(text));
      for (const change of changes) changeDue(key, change);
      return next;
    },
    isDue: (queue) => listDue.all(Buffer.from(queue), now(), 1).length > 0,
    take: (queue, limit, leaseMs) =>
      listDue.all(Buffer.from(queue), now(), limit).map((row) => {
        const key = textOf(row.key);
        return { key, lease: lease(queue, key, leaseMs), record: read(key) };
      }),
    extend(queue, key, current, leaseMs) {
      const [entry] = findDue.all(Buffer.from(queue), Buffer.from(key));
      return leaseIn(entry) === current ? lease(queue, key, leaseMs) : undefined;
    },
    reschedule: changeDue,
    promote(from, to, limit) {
      for (const row of list.all(Buffer.from(from), limit)) {
        const key = textOf(row.key);
        changeDue(key, { queue: from, inMs: undefined });
        if (findDue.all(Buffer.from(to), Buffer.from(key)).length > 0) changeDue(key, { queue: to, inMs: 0 });
      }
    },
    list: (queue, limit) =>
      list.all(Buffer.from(queue), limit).flatMap((row) => {
        const key = textOf(row.key);
        const record = read(key);
        return record ? [{ key, record }] : [];
      }),
    count(queue) {
      const [row] = counts.all(now(), Buffer.from(queue));
      return { all: Number(row?.n ?? 0), due: Number(row?.due ?? 0) };
    },
  };
}

const leaseIn = (entry: Row | undefined) => (entry?.leased === 1 ? String(entry.due) : undefined);

const textOf = (bytes: unknown) => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : '');

/** @param read and @param change execute an operation on the open file */
export const createSqliteSchedules = (
  read: <Result>(operation: (tables: ScheduleTables) => Result) => Promise<Result>,
  change: <Result>(operation: (tables: ScheduleTables) => Result) => Promise<Result>,
): Schedules => ({
  read: (key) => read((tables) => tables.read(key)),
  write: (key, ...rest) => change((tables) => tables.write(key, ...rest)),
  async take(queue, limit, leaseMs) {
    if (!(await read((tables) => tables.isDue(queue)))) return []; // without a write to the disk
    return change((tables) => tables.take(queue, limit, leaseMs));
  },
  extend: (queue, ...rest) => change((tables) => tables.extend(queue, ...rest)),
  reschedule: (key, changeOfDue) => change((tables) => tables.reschedule(key, changeOfDue)),
  promote: (from, to, limit) => change((tables) => tables.promote(from, to, limit)),
  list: (queue, limit) => read((tables) => tables.list(queue, limit)),
  count: (queue) => read((tables) => tables.count(queue)),
});
