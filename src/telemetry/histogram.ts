/** A histogram in the sense of Prometheus. Adding a value is cheap; the samples are computed at a scrape. */

import { createLabelledValues, type Labels } from './labelled-values.ts';

export interface Histogram {
  observe(labels: Labels, value: number): void;
  /** Cumulative buckets, sum and count of each combination of labels. */
  samples(): Sample[];
}

/** A line of the text format. */
interface Sample {
  readonly metricName: string;
  readonly labels: Record<string, string | number>;
  readonly value: number;
}

/** The values of one combination of labels. */
interface Series {
  /** Per bucket, not cumulative. */
  readonly counts: number[];
  count: number;
  sum: number;
}

/** @param bounds upper bounds, ascending, without `+Inf` */
export function createHistogram(
  name: string,
  labelNames: readonly string[],
  bounds: readonly number[],
): Histogram {
  const allSeries = createLabelledValues<Series>(labelNames, () => ({
    counts: bounds.map(() => 0),
    count: 0,
    sum: 0,
  }));

  function samplesOf(labels: Labels, series: Series): Sample[] {
    let cumulative = 0;
    return [
      ...bounds.map((le, index) => {
        cumulative += series.counts[index] ?? 0;
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: cumulative };
      }),
      { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: series.count },
      { metricName: `${name}_sum`, labels, value: series.sum },
      { metricName: `${name}_count`, labels, value: series.count },
    ];
  }

  return {
    observe(labels, value) {
      const series = allSeries.of(labels);
      const index = bounds.findIndex((bound) => value <= bound);
      if (index >= 0) series.counts[index] = (series.counts[index] ?? 0) + 1;
      series.count += 1;
      series.sum += value;
    },
    samples: () => allSeries.all().flatMap(({ labels, value }) => samplesOf(labels, value)),
  };
}
