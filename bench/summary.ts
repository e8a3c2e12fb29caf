/** What many runs come to: a line for each contender, with medians of the runs that nobody disturbed. */

import type { Run } from './compare.ts';
import { tolerated } from './measure/sample.ts';
import { median } from './measure/statistics.ts';

/** One contender under one load. */
export interface Line {
  readonly contender: string;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicros: number;
  /** How often as many requests a second as whom it stands beside, in the same round; none if that one did not run. */
  readonly times: Readonly<Record<string, number | undefined>>;
  /** How much of the CPU time that the other needs for a request, in the same round. */
  readonly cpuTimes: Readonly<Record<string, number | undefined>>;
  /** By how much its p50 is longer than that of whom it stands beside, in the same round. */
  readonly addedP50Ms: Readonly<Record<string, number | undefined>>;
  readonly errors: number;
  readonly runs: number;
  /** Runs in which others took too much of the machine; left out, unless there are no others. */
  readonly disturbed: number;
}

/** @param runs of one load. @param beside names of contenders */
export function summarise(runs: readonly Run[], beside: readonly string[]): readonly Line[] {
  const contenders = [...new Set(runs.map(({ contender }) => contender))];
  return contenders.map((contender) => {
    const all = runs.filter((run) => run.contender === contender);
    const calm = all.filter(({ foreign }) => foreign <= tolerated);
    const counted = calm.length > 0 ? calm : all;
    const middle = (value: (run: Run) => number) => median(counted.map(value));
    const pairs = (other: string) =>
      counted.flatMap((run) => {
        const same = runs.find(({ contender: name, round }) => name === other && round === run.round);
        return same && other !== contender ? [{ run, same }] : [];
      });
    const compared = (value: (pair: { run: Run; same: Run }) => number) =>
      Object.fromEntries(
        beside.map((other) => {
          const found = pairs(other);
          return [other, found.length > 0 ? median(found.map(value)) : undefined];
        }),
      );
    return {
      contender,
      requestsPerSecond: middle((run) => run.requestsPerSecond),
      p50Ms: middle((run) => run.p50Ms),
      p99Ms: middle((run) => run.p99Ms),
      cpuMicros: middle((run) => run.cpuMicros),
      times: compared(({ run, same }) => run.requestsPerSecond / same.requestsPerSecond),
      cpuTimes: compared(({ run, same }) => run.cpuMicros / same.cpuMicros),
      addedP50Ms: compared(({ run, same }) => run.p50Ms - same.p50Ms),
      errors: all.reduce((sum, { errors }) => sum + errors, 0),
      runs: all.length,
      disturbed: all.length - calm.length,
    };
  });
}
