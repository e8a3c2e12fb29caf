/** The time slices of the request log. A record belongs to the slice in which its request ended. */

export const sliceMs = 600_000;

/** @param atMs milliseconds since 1970 */
export const sliceOf = (atMs: number): number => Math.floor(atMs / sliceMs);

/** A slice is kept until its last record is as old as `keepForMs`. @returns milliseconds from now on */
export const remainingMs = (slice: number, keepForMs: number, nowMs: number): number =>
  (slice + 1) * sliceMs + keepForMs - nowMs;

/** How far the clock of another instance may be ahead, so that its records are found at once. */
export const clockMarginMs = 60_000;
