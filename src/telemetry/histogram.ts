/** A histogram in the sense of Prometheus. Adding a value is cheap; the samples are computed at a scrape. */

import { createLabelledValues, type Labels } from './labelled-values.ts';

export interface Histogram {
  of(labels: Labels): BoundHistogram;
  /** Cumulative buckets, sum and count of each combination of labels. */
  samples(): Sample[];
}

/** The values of one combination of labels. */
export interface BoundHistogram {
  observe(value: number): void;
}

/** A line of the text format. */
interface Sample {
  readonly metricName: string;
  readonly labels: Record<string, string | number>;
  readonly value: number;
}

/** @param bounds upper bounds, ascending, without `+Inf` */
export function createHistogram(
  name: string,
  labelNames: readonly string[],
  bounds: readonly number[],
): Histogram {
  const allSeries = createLabelledValues(labelNames, () => new Series(bounds));

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
    of: allSeries.of,
    samples: () => allSeries.all().flatMap(({ labels, value }) => samplesOf(labels, value)),
  };
}

class Series implements BoundHistogram {
  readonly #bounds: readonly number[];
  /** Per bucket, not cumulative. */
  readonly counts: number[];
  count = 0;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++;
    if (bucket < bounds.length) this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.count += 1;
    this.sum += value;
  }
}
