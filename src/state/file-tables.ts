/** What stands in the file of a state: values, members of sets, and the time, as SQL. */

/** A cell: texts are bytes, for NUL ends a text of SQLite's. */
type Cell = Uint8Array | number | null;

/** A prepared statement. */
export interface Statement {
  /** @returns how many rows it changed */
  run(...cells: readonly Cell[]): number;
  all(...cells: readonly Cell[]): readonly Readonly<Record<string, unknown>>[];
}

/** `KeyValues` and `Sets`, at once. Every operation throws what SQLite throws; those that change go through `transact`. */
export interface Tables {
  /** Makes all changes that `work` makes, or none if it throws; they are on the disk when it comes back. */
  transact(work: () => void): void;
  read(key: string): string | undefined;
  write(key: string, value: string, ttlMs?: number): void;
  writeIfAbsent(key: string, value: string, ttlMs?: number): boolean;
  replace(key: string, expected: string, value: string, ttlMs?: number): boolean;
  remove(key: string): void;
  addMember(key: string, member: string): void;
  removeMember(key: string, member: string): void;
  members(key: string): readonly string[];
}

/** In an empty database. A value without `expires` lives for ever; `expires` and `seen` are milliseconds since 1970. */
export const tables = `
CREATE TABLE value (key BLOB PRIMARY KEY, text BLOB NOT NULL, expires REAL) STRICT;
CREATE INDEX value_by_end ON value (expires) WHERE expires IS NOT NULL;
CREATE TABLE member (key BLOB, text BLOB, PRIMARY KEY (key, text)) STRICT, WITHOUT ROWID;
CREATE TABLE clock (seen REAL NOT NULL) STRICT;
INSERT INTO clock VALUES (0);
`;

/** How many expired values each change removes: more than it can add, so that the file is as large as what lives in it. */
const removedPerChange = 2;
/** How often the time is noted, for the next start. Milliseconds. */
const notedEveryMs = 60_000;

/** @returns the last time that an earlier run noted. Milliseconds since 1970 */
export const timeSeen = (prepare: (sql: string) => Statement): number =>
  Number(prepare('SELECT seen FROM clock').all()[0]?.seen ?? 0);

/** @param now milliseconds since 1970, never backwards, across restarts */
export function createTables(prepare: (sql: string) => Statement, now: () => number): Tables {
  const begin = prepare('BEGIN IMMEDIATE');
  const commit = prepare('COMMIT');
  const rollback = prepare('ROLLBACK');
  const find = prepare('SELECT text FROM value WHERE key = ? AND (expires IS NULL OR expires > ?)');
  const put = `INSERT INTO value (key, text, expires) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET text = excluded.text, expires = excluded.expires`;
  const write = prepare(put);
  const writeIfOver = prepare(`${put} WHERE value.expires <= ?`);
  const remove = prepare('DELETE FROM value WHERE key = ?');
  const sweep = prepare(`DELETE FROM value WHERE rowid IN
    (SELECT rowid FROM value WHERE expires <= ? LIMIT ${removedPerChange})`);
  const add = prepare('INSERT INTO member VALUES (?, ?) ON CONFLICT DO NOTHING');
  const drop = prepare('DELETE FROM member WHERE key = ? AND text = ?');
  const list = prepare('SELECT text FROM member WHERE key = ?');
  const note = prepare('UPDATE clock SET seen = max(seen, ?)');
  let notedAtMs = Number.NEGATIVE_INFINITY;

  function change(work: (nowMs: number) => number): boolean {
    const nowMs = now();
    const changed = work(nowMs) > 0;
    sweep.run(nowMs);
    return changed;
  }

  /** SQLite may have done so itself, and then says that there is nothing to undo. */
  function undo(): void {
    try {
      rollback.run();
    } catch {}
  }

  const endOf = (nowMs: number, ttlMs: number | undefined) => (ttlMs === undefined ? null : nowMs + ttlMs);
  const standing = (key: string, nowMs: number) => find.all(bytesOf(key), nowMs).map(textIn)[0];
  const set = (nowMs: number, key: string, value: string, ttlMs: number | undefined) =>
    write.run(bytesOf(key), bytesOf(value), endOf(nowMs, ttlMs));

  return {
    transact(work) {
      const isDue = now() - notedAtMs >= notedEveryMs;
      begin.run();
      try {
        work();
        if (isDue) note.run(now());
        commit.run();
      } catch (error) {
        undo();
        throw error;
      }
      if (isDue) notedAtMs = now();
    },
    read: (key) => standing(key, now()),
    write: (key, value, ttlMs) => void change((nowMs) => set(nowMs, key, value, ttlMs)),
    writeIfAbsent: (key, value, ttlMs) =>
      change((nowMs) => writeIfOver.run(bytesOf(key), bytesOf(value), endOf(nowMs, ttlMs), nowMs)),
    replace: (key, expected, value, ttlMs) =>
      change((nowMs) =>
        standing(key, nowMs) === expected.toWellFormed() ? set(nowMs, key, value, ttlMs) : 0,
      ),
    remove: (key) => void change(() => remove.run(bytesOf(key))),
    addMember: (key, member) => void change(() => add.run(bytesOf(key), bytesOf(member))),
    removeMember: (key, member) => void change(() => drop.run(bytesOf(key), bytesOf(member))),
    members: (key) => list.all(bytesOf(key)).map(textIn),
  };
}

const bytesOf = (text: string) => Buffer.from(text);

function textIn({ text }: Readonly<Record<string, unknown>>): string {
  return text instanceof Uint8Array ? Buffer.from(text).toString() : '';
}
