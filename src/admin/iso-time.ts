/** Times in the JSON of the admin API. */

/** @param atMs milliseconds since 1970 */
export const isoTime = (atMs: number): string => new Date(atMs).toISOString();

export const isoTimeOrNull = (atMs: number | undefined): string | null =>
  atMs === undefined ? null : isoTime(atMs);
