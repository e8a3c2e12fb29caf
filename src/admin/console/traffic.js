/** The charts of the page: requests, latencies, status reads, queues, circuits. */

import { createCircuitTimeline } from './circuit-timeline.js';
import { byId, formatDuration } from './dom.js';
import { createLineChart } from './line-chart.js';

const formatNumber = (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 });
const formatRate = (value) => `${formatNumber(value)}/s`;

/** The colours of the environments. They repeat if there are more environments than colours. */
const colors = ['accent', 'violet', 'amber', 'red', 'grey', 'pale'];

/** @returns a function that renders the given state of the gateway */
export function createTraffic() {
  const requests = createLineChart({
    title: 'Requests',
    series: [
      { name: 'requests', label: 'all', color: 'accent' },
      { name: 'failed', label: 'failed at the bank', color: 'red' },
      { name: 'refused', label: 'refused by the gateway', color: 'violet' },
    ],
    minScale: 5,
    format: formatRate,
  });
  const latency = createLineChart({
    title: 'Latency',
    series: [
      { name: 'p50Ms', label: 'p50', color: 'accent' },
      { name: 'p99Ms', label: 'p99', color: 'violet' },
    ],
    minScale: 20,
    format: formatDuration,
  });
  const statusReads = createLineChart({
    title: 'Status reads by source',
    stacked: true,
    series: [
      { name: 'hit', label: 'cache', color: 'accent' },
      { name: 'shared', label: 'shared request', color: 'pale' },
      { name: 'miss', label: 'bank', color: 'violet' },
      { name: 'stale', label: 'stale cache', color: 'amber' },
      { name: 'bypass', label: 'bypass', color: 'grey' },
    ],
    minScale: 5,
    format: formatRate,
  });
  const circuits = createCircuitTimeline('Circuits');
  let queues;
  let queueNames = '';
  byId('charts').replaceChildren(requests.element, latency.element, statusReads.element, circuits.element);

  return ({ seconds, samples, environments }) => {
    const names = environments.map(({ name }) => name);
    if (names.join() !== queueNames) {
      queueNames = names.join();
      queues?.destroy();
      queues?.element.remove();
      queues = createQueueChart(names);
      circuits.element.before(queues.element);
    }
    const now = Math.max(samples.at(-1)?.at ?? 0, seconds.at(-1)?.at ?? 0);
    requests.draw(seconds, now);
    latency.draw(seconds, now);
    statusReads.draw(
      seconds.map(({ at, cache }) => ({ at, ...cache })),
      now,
    );
    queues.draw(samples.map(queuePoint), now);
    circuits.draw(
      samples.map(({ at, circuits: states }) => ({ at, states })),
      now,
    );
  };
}

const createQueueChart = (names) =>
  createLineChart({
    title: 'Queued calls',
    size: 'half',
    series: names.map((name, index) => ({
      name: seriesName(name),
      label: name,
      color: colors[index % colors.length],
    })),
    minScale: 10,
    format: formatNumber,
  });

const queuePoint = ({ at, waiting }) => ({
  at,
  ...Object.fromEntries(Object.entries(waiting).map(([name, calls]) => [seriesName(name), calls])),
});

/** The prefix prevents a conflict: an environment may be called `at`, and a point stores its time as `at`. */
const seriesName = (environment) => `environment ${environment}`;
