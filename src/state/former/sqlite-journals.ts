/** Journals in the table of values of a SQLite file (sqlite.ts): one row for each text. */

import { maxJournalTexts } from '../ports.ts';

interface Statement {
  run(...values: readonly (Buffer | number)[]): { readonly changes: number | bigint };
  all(...values: readonly (Buffer | number)[]): readonly Readonly<Record<string, unknown>>[];
}

interface JournalRows {
  /** Must run in a transaction. @param expiresMs of the whole journal; times are milliseconds on the clock of the file */
  append(
    key: string,
    texts: readonly string[],
    nowMs: number,
    expiresMs: number,
  ): { readonly changes: number | bigint };
  /** The rows with the column `text`, the oldest first. */
  read(key: string, nowMs: number): readonly Readonly<Record<string, unknown>>[];
}

/** A former release can use the file as well: it never reads these keys, and deletes what has expired. */
export function createJournalRows(prepare: (sql: string) => Statement): JournalRows {
  const deleteExpired = prepare('DELETE FROM value WHERE key >= ? AND key < ? AND expires <= ?');
  const lastKey = prepare('SELECT max(key) AS last FROM value WHERE key >= ? AND key < ?');
  const insert = prepare('INSERT INTO value (key, text, expires) VALUES (?, ?, ?)');
  const deleteBefore = prepare('DELETE FROM value WHERE key >= ? AND key <= ?');
  const renew = prepare('UPDATE value SET expires = ? WHERE key >= ? AND key < ?');
  const list = prepare('SELECT text FROM value WHERE key >= ? AND key < ? AND expires > ? ORDER BY key');
  return {
    append(key, texts, nowMs, expiresMs) {
      const { first, end } = rangeOf(key);
      deleteExpired.run(first, end, nowMs);
      let position = positionIn(lastKey.all(first, end)[0]?.last);
      for (const text of texts) {
        position += 1;
        insert.run(rowKey(key, position), Buffer.from(text), expiresMs);
      }
      if (position > maxJournalTexts) deleteBefore.run(first, rowKey(key, position - maxJournalTexts));
      return renew.run(expiresMs, first, end);
    },
    read(key, nowMs) {
      const { first, end } = rangeOf(key);
      return list.all(first, end, nowMs);
    },
  };
}

/** UTF-8 contains neither of these two bytes, so no other key begins like the rows of a journal. */
const separator = [0xff, 0xfe] as const;
const behindSeparator = [0xff, 0xff] as const;
const positionDigits = 16;

const rowKey = (key: string, position: number) =>
  Buffer.concat([
    Buffer.from(key),
    Buffer.of(...separator),
    Buffer.from(String(position).padStart(positionDigits, '0')),
  ]);

/** The keys of a journal: from `first` on, and before `end`. */
const rangeOf = (key: string) => ({
  first: Buffer.concat([Buffer.from(key), Buffer.of(...separator)]),
  end: Buffer.concat([Buffer.from(key), Buffer.of(...behindSeparator)]),
});

const positionIn = (key: unknown) =>
  key instanceof Uint8Array ? Number(Buffer.from(key.subarray(-positionDigits)).toString()) : 0;
