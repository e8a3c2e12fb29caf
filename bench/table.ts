/** Tables for the terminal and for Markdown. */

import type { Line } from './summary.ts';

/** Columns as wide as their longest cell; the first one left, the others right. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, at) => (at === 0 ? (row[at] ?? '').padEnd(width) : (row[at] ?? '').padStart(width))).join(' | ')} |`;
  const rule = `|${widths.map((width, at) => (at === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** What is shown of whom the contenders stand beside: multiples of requests and CPU time, or added milliseconds. */
export type Comparison = 'multiples' | 'added';

/** The lines of one load. @param beside names of contenders; who did not run is left out */
export function comparisonOf(
  lines: readonly Line[],
  beside: readonly string[],
  comparison: Comparison = 'multiples',
): string {
  const shown = beside.filter((other) => lines.some(({ contender }) => contender === other));
  const compared =
    comparison === 'added'
      ? [{ title: 'p50 + ms over', value: (line: Line) => line.addedP50Ms }]
      : [
          { title: '×', value: (line: Line) => line.times },
          { title: 'CPU ×', value: (line: Line) => line.cpuTimes },
        ];
  const columns = shown.flatMap((other) => compared.map((column) => ({ ...column, other })));
  return tableOf(
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
      runsOf(line),
    ]),
  );
}

function runsOf({ runs, disturbed, errors }: Line): string {
  const notes = [disturbed > 0 ? `${disturbed} disturbed` : [], errors > 0 ? `${errors} ERRORS` : []].flat();
  return [runs, ...notes].join(', ');
}
