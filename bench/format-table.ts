/** Formats tables for the terminal and for Markdown. */

import type { SummaryRow } from './summary.ts';

/** Columns have the width of their longest cell; the first is left-aligned, the others right-aligned. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, at) => (at === 0 ? (row[at] ?? '').padEnd(width) : (row[at] ?? '').padStart(width))).join(' | ')} |`;
  const rule = `|${widths.map((width, at) => (at === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** The comparison with a baseline: ratios of requests and CPU time, or additional milliseconds. */
export type Comparison = 'multiples' | 'added';

/** A column of the comparison with one baseline. */
interface Column {
  readonly title: string;
  readonly value: (line: SummaryRow) => number | undefined;
  readonly digits: number;
}

/**
 * @param lines        rows of one load profile
 * @param baselines    names of contenders; those that did not run are omitted
 * @param p99Baselines those of them that p99 is compared with as well
 */
export function formatComparison(
  lines: readonly SummaryRow[],
  baselines: readonly string[],
  comparison: Comparison = 'multiples',
  p99Baselines: readonly string[] = [],
): string {
  const shown = baselines.filter((other) => lines.some(({ contender }) => contender === other));
  const columns = shown.flatMap((other): readonly Column[] => {
    if (comparison === 'added')
      return [{ title: `p50 + ms over ${other}`, value: (line) => line.addedP50Ms[other], digits: 3 }];
    const p99: Column = { title: `p99 × ${other}`, value: (line) => line.p99Ratios[other], digits: 2 };
    return [
      { title: `× ${other}`, value: (line) => line.throughputRatios[other], digits: 2 },
      { title: `CPU × ${other}`, value: (line) => line.cpuRatios[other], digits: 2 },
      ...(p99Baselines.includes(other) ? [p99] : []),
    ];
  });
  return formatTable(
    [
      ...['contender', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs'],
      ...columns.map(({ title }) => title),
      'runs',
    ],
    lines.map((line) => [
      line.contender,
      Math.round(line.requestsPerSecond).toLocaleString('en'),
      line.p50Ms.toFixed(2),
      line.p99Ms.toFixed(1),
      line.cpuMicros.toFixed(1),
      ...columns.map(({ value, digits }) => value(line)?.toFixed(digits) ?? ''),
      formatRuns(line),
    ]),
  );
}

function formatRuns({ runs, disturbed, errors }: SummaryRow): string {
  const notes = [disturbed > 0 ? `${disturbed} disturbed` : [], errors > 0 ? `${errors} ERRORS` : []].flat();
  return [runs, ...notes].join(', ');
}
