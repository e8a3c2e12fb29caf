/** Tables in the output of a test: what was promised, as it was found. */

import type { TestContext } from 'node:test';

/** Prints rows under each other, the first of them being the names of the columns. */
export function printTable(t: Pick<TestContext, 'diagnostic'>, rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows)
    t.diagnostic(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
}

/** What many cases have in common, in one cell; where they differ, their values one after the other. */
export const together = (values: readonly unknown[]): string =>
  [...new Set(values.map((value) => `${value}`))].join(' / ');
