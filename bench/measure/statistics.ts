/** Medians, percentiles and slopes. */

/** The median; NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  if (!Number.isInteger(middle)) return at(sorted, Math.floor(middle));
  return (at(sorted, middle - 1) + at(sorted, middle)) / 2;
}

/** The percentile by nearest rank. @param part from 0 to 1 */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return at(sorted, Math.max(0, Math.ceil(part * sorted.length) - 1));
}

/** (maximum - minimum) / median. */
export const spread = (values: readonly number[]): number =>
  (Math.max(...values) - Math.min(...values)) / median(values);

/** The slope of y over x by least squares. NaN for fewer than two points. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  const together = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return together / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const at = (sorted: readonly number[], index: number) => sorted[index] ?? Number.NaN;
