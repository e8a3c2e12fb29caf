/** A histogram as Prometheus knows it, cheap to tell of a value: its samples are only made when they are read. */

import { createLabelledValues, type Labels } from './labelled-values.ts';

export interface Histogram {
  /** Notes one value. */
  observe(labels: Labels, value: number): void;
  /** How many values were no greater than each bound, their sum, and their number; of each combination of labels. */
  samples(): Sample[];
}

/** A line of the text format. */
interface Sample {
  readonly metricName: string;
  readonly labels: Record<string, string | number>;
  readonly value: number;
}

/** How many values were no greater than each bound but greater than the one before, and all of them together. */
interface BucketCounts {
  readonly counts: number[];
  count: number;
  sum: number;
}

/** Nothing is noted yet. @param bounds upper ones, ascending, in the unit of the name; one without end is added */
export function createHistogram(
  name: string,
  labelNames: readonly string[],
  bounds: readonly number[],
): Histogram {
  const series = createLabelledValues<BucketCounts>(labelNames, () => ({
    counts: bounds.map(() => 0),
    count: 0,
    sum: 0,
  }));

  function samplesOf({
    labels,
    value: tally,
  }: {
    readonly labels: Labels;
    readonly value: BucketCounts;
  }): Sample[] {
    let below = 0;
    return [
      ...bounds.map((le, index) => {
        below += tally.counts[index] ?? 0;
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: below };
      }),
      { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: tally.count },
      { metricName: `${name}_sum`, labels, value: tally.sum },
      { metricName: `${name}_count`, labels, value: tally.count },
    ];
  }

  return {
    observe(labels, value) {
      const tally = series.of(labels);
      const index = bounds.findIndex((bound) => value <= bound);
      if (index >= 0) tally.counts[index] = (tally.counts[index] ?? 0) + 1;
      tally.count += 1;
      tally.sum += value;
    },
    samples: () => series.all().flatMap(samplesOf),
  };
}
