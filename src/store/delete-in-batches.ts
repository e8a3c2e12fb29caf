/** Deletes what has expired in many small statements, so that no lock and no transaction lasts long. */

import { setImmediate } from 'node:timers/promises';

/** So many rows are deleted in one statement, which blocks this process for about 20 ms in SQLite, and so many statements at a time. */
const deletedAtOnce = 500;
const maxDeletions = 200;

/** What one statement has deleted: the rows, and the time of the newest one, by which they are in order. */
export interface Deleted {
  readonly rows: number;
  readonly newest: number;
}

/**
 * @param deleteSome deletes at most `limit` rows, the oldest first, and none that is older than `from`. Each statement goes on where the
 * one before it stopped: until a vacuum, PostgreSQL reads deleted rows again
 */
export async function deleteInBatches(
  deleteSome: (limit: number, from: number) => Promise<Deleted>,
): Promise<void> {
  let from = 0;
  for (let deletions = 0; deletions < maxDeletions; deletions += 1) {
    const { rows, newest } = await deleteSome(deletedAtOnce, from);
    if (rows < deletedAtOnce) return;
    from = newest;
    await setImmediate(); // requests are served in between: SQLite answers in the same turn of the event loop
  }
}

/** @param times of the deleted rows */
export const deletedAt = (times: readonly number[]): Deleted => ({
  rows: times.length,
  newest: times.reduce((newest, time) => Math.max(newest, time), 0),
});
