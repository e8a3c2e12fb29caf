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

/** @param lines rows of one load profile @param baselines names of contenders; those that did not run are omitted */
export function formatComparison(
  lines: readonly SummaryRow[],
  baselines: readonly string[],
  comparison: Comparison = 'multiples',
): string {
  const shown = baselines.filter((other) => lines.some(({ contender }) => contender === other));
  const compared =
    comparison === 'added'
      ? [{ title: 'p50 + ms over', value: (line: SummaryRow) => line.addedP50Ms }]
      : [
          { title: '×', value: (line: SummaryRow) => line.throughputRatios },
          { title: 'CPU ×', value: (line: SummaryRow) => line.cpuRatios },
        ];
  const columns = shown.flatMap((other) => compared.map((column) => ({ ...column, other })));
  return formatTable(
    [
      ...['contender', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs'],
      ...columns.map(({ title, other }) => `${title} ${other}`),
      'runs',
    ],
    lines.map((line) => [
      line.contender,
      Math.round(line.requestsPerSecond).toLocaleString('en'),
      line.p50Ms.toFixed(2),
      line.p99Ms.toFixed(1),
      line.cpuMicros.toFixed(1),
      ...columns.map(({ value, other }) => value(line)[other]?.toFixed(2) ?? ''),
      formatRuns(line),
    ]),
  );
}

function formatRuns({ runs, disturbed, errors }: SummaryRow): string {
  const notes = [disturbed > 0 ? `${disturbed} disturbed` : [], errors > 0 ? `${errors} ERRORS` : []].flat();
  return [runs, ...notes].join(', ');
}
