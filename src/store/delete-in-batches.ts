/** Deletes what has expired in many small statements, so that no lock and no transaction lasts long. */

/** So many rows are deleted in one statement, and so many statements are executed at a time. */
const deletedAtOnce = 1_000;
const maxDeletions = 100;

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
  }
}

/** @param times of the deleted rows */
export const deletedAt = (times: readonly number[]): Deleted => ({
  rows: times.length,
  newest: times.reduce((newest, time) => Math.max(newest, time), 0),
});
