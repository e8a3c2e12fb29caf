/** The periods in which the share of each tenant is counted. */

export const sliceMs = 600_000;

/** @param atMs milliseconds since 1970 */
export const sliceOf = (atMs: number): number => Math.floor(atMs / sliceMs);

/** How far the clock of another instance may be ahead, so that its records are found at once. */
export const clockMarginMs = 60_000;
