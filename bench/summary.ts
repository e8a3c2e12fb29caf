/** Summarises runs: one row per contender, with medians of the undisturbed runs. */

import { maxForeignShare, type Sample } from './measure/sample.ts';
import { median } from './measure/statistics.ts';

/** The result of one contender under one load profile in one round. */
export interface Run extends Sample {
  readonly contender: string;
  /** The name of the load profile, such as `32 connections`. */
  readonly loadProfile: string;
  readonly round: number;
}

/** One contender under one load profile. */
export interface SummaryRow {
  readonly contender: string;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicros: number;
  /** Requests per second divided by the baseline's in the same round; `undefined` if the baseline did not run. */
  readonly throughputRatios: Readonly<Record<string, number | undefined>>;
  /** CPU time per request divided by the baseline's in the same round. */
  readonly cpuRatios: Readonly<Record<string, number | undefined>>;
  /** p99 divided by the baseline's in the same round. */
  readonly p99Ratios: Readonly<Record<string, number | undefined>>;
  /** p50 minus the baseline's in the same round. */
  readonly addedP50Ms: Readonly<Record<string, number | undefined>>;
  readonly errors: number;
  readonly runs: number;
  /** Runs in which other processes took too much CPU; ignored, unless all runs were disturbed. */
  readonly disturbed: number;
}

/** @param runs of one load profile @param baselines names of contenders */
export function summarise(runs: readonly Run[], baselines: readonly string[]): readonly SummaryRow[] {
  const contenders = [...new Set(runs.map(({ contender }) => contender))];
  return contenders.map((contender) => {
    const all = runs.filter((run) => run.contender === contender);
    const undisturbed = all.filter(({ foreignShare }) => foreignShare <= maxForeignShare);
    const counted = undisturbed.length > 0 ? undisturbed : all;
    const medianOf = (value: (run: Run) => number) => median(counted.map(value));
    const pairs = (other: string) =>
      counted.flatMap((run) => {
        const same = runs.find(({ contender: name, round }) => name === other && round === run.round);
        return same && other !== contender ? [{ run, same }] : [];
      });
    const compared = (value: (pair: { run: Run; same: Run }) => number) =>
      Object.fromEntries(
        baselines.map((other) => {
          const found = pairs(other);
          return [other, found.length > 0 ? median(found.map(value)) : undefined];
        }),
      );
    return {
      contender,
      requestsPerSecond: medianOf((run) => run.requestsPerSecond),
      p50Ms: medianOf((run) => run.p50Ms),
      p99Ms: medianOf((run) => run.p99Ms),
      cpuMicros: medianOf((run) => run.cpuMicros),
      throughputRatios: compared(({ run, same }) => run.requestsPerSecond / same.requestsPerSecond),
      cpuRatios: compared(({ run, same }) => run.cpuMicros / same.cpuMicros),
      p99Ratios: compared(({ run, same }) => run.p99Ms / same.p99Ms),
      addedP50Ms: compared(({ run, same }) => run.p50Ms - same.p50Ms),
      errors: all.reduce((sum, { errors }) => sum + errors, 0),
      runs: all.length,
      disturbed: all.length - undisturbed.length,
    };
  });
}
