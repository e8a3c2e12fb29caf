/** Deletes what has expired in many small statements, so that no lock and no transaction lasts long. */

/** So many rows are deleted in one statement, and so many statements are executed at a time. */
const deletedAtOnce = 1_000;
const maxDeletions = 100;

/** @param deleteSome deletes at most so many rows; returns how many */
export async function deleteInBatches(deleteSome: (limit: number) => Promise<number>): Promise<void> {
  for (let deletions = 0; deletions < maxDeletions; deletions += 1)
    if ((await deleteSome(deletedAtOnce)) < deletedAtOnce) return;
}
