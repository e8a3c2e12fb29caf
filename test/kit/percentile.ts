/** How the slow ones of many measurements fare. */

/** The value below which this part of all values lies; NaN of none. @param part from 0 to 1 */
export function percentile(values: readonly number[], part: number): number {
  const inOrder = values.toSorted((one, other) => one - other);
  return inOrder[Math.min(inOrder.length - 1, Math.floor(inOrder.length * part))] ?? Number.NaN;
}
