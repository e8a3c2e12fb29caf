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

/** The lines of one load. @param beside whom to show multiples of */
export function comparisonOf(lines: readonly Line[], beside: readonly string[]): string {
  const shown = beside.filter((other) => lines.some(({ contender }) => contender === other));
  return tableOf(
    [
      ...['contender', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs'],
      ...shown.flatMap((other) => [`× ${other}`, '+p50 ms']),
      'runs',
    ],
    lines.map((line) => [
      line.contender,
      Math.round(line.requestsPerSecond).toLocaleString('en'),
      line.p50Ms.toFixed(2),
      line.p99Ms.toFixed(1),
      line.cpuMicros.toFixed(1),
      ...shown.flatMap((other) => [number(line.times[other], 2), number(line.addedP50Ms[other], 2)]),
      runsOf(line),
    ]),
  );
}

const number = (value: number | undefined, digits: number) => value?.toFixed(digits) ?? '';

function runsOf({ runs, disturbed, errors }: Line): string {
  const notes = [disturbed > 0 ? `${disturbed} disturbed` : [], errors > 0 ? `${errors} ERRORS` : []].flat();
  return [runs, ...notes].join(', ');
}
