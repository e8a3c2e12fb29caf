/** The charts of the page: requests, latencies, status reads, queues, circuits; live, or a longer period from the history. */

import { createCircuitTimeline } from './circuit-timeline.js';
import { callApi } from './connection.js';
import { byId, formatDuration, formatNumber } from './dom.js';
import { createLineChart } from './line-chart.js';
import { createPanel } from './panel.js';
import { liveRange, selectedRange } from './time-range.js';

const formatRate = (value) => `${formatNumber(value)}/s`;

/** The colours of the environments. They repeat if there are more environments than colours. */
const colors = ['accent', 'violet', 'amber', 'red', 'grey', 'pale'];

const requestChart = {
  title: 'Requests',
  series: [
    { name: 'requests', label: 'all', color: 'accent' },
    { name: 'failed', label: 'failed at the bank', color: 'red' },
    { name: 'refused', label: 'refused by the gateway', color: 'violet' },
  ],
  minScale: 5,
  format: formatRate,
};

const latencyChart = {
  title: 'Latency',
  series: [
    { name: 'p50Ms', label: 'p50', color: 'accent' },
    { name: 'p99Ms', label: 'p99', color: 'violet' },
  ],
  minScale: 20,
  format: formatDuration,
};

const statusReadChart = {
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
};

/** @returns `panel`, which reads the history while it is shown; `render(state)` */
export function createTraffic() {
  const requests = createLineChart(requestChart);
  const latency = createLineChart(latencyChart);
  const statusReads = createLineChart(statusReadChart);
  const circuits = createCircuitTimeline('Circuits');
  let queues;
  let queueNames = '';
  byId('charts').replaceChildren(requests.element, latency.element, statusReads.element, circuits.element);

  const form = byId('time-range');
  let live;
  const panel = createPanel({
    section: 'traffic-history',
    name: 'The history',
    everyMs: 30_000,
    read: () => readHistory(selectedRange(form)),
    render: ({ points, range }) => drawTraffic(points, range),
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', () => {
    panel.stop(); // an older period must not appear under the new one
    showRange();
  });

  function showRange() {
    const isLive = selectedRange(form) === undefined;
    byId('until-field').hidden = isLive;
    byId('live-traffic').hidden = !isLive;
    byId('traffic-history').hidden = isLive;
    for (const element of [queues?.element, circuits.element]) element?.toggleAttribute('hidden', !isLive);
    if (isLive) return drawLive();
    drawTraffic([], selectedRange(form));
    panel.start();
  }

  function drawTraffic(points, range) {
    requests.draw(points, range);
    latency.draw(points, range);
    statusReads.draw(points, range);
  }

  function drawLive() {
    if (!live) return;
    const { seconds, samples } = live;
    const now = Math.max(samples.at(-1)?.at ?? 0, seconds.at(-1)?.at ?? 0);
    const range = liveRange(now);
    drawTraffic(
      seconds.map(({ cache, ...second }) => ({ ...second, ...cache })),
      range,
    );
    queues.draw(samples.map(queuePoint), range);
    circuits.draw(
      samples.map(({ at, circuits: states }) => ({ at, states })),
      now,
    );
  }

  return {
    panel,
    render(state) {
      live = state;
      const names = state.environments.map(({ name }) => name);
      if (names.join() !== queueNames) {
        queueNames = names.join();
        queues?.destroy();
        queues?.element.remove();
        queues = createQueueChart(names);
        circuits.element.before(queues.element);
        showRange();
        return;
      }
      if (selectedRange(form) === undefined) drawLive();
    },
  };
}

/** @returns points per second of the selected period, as the live charts take them */
async function readHistory(range) {
  const query = new URLSearchParams({ from: isoTime(range.from), to: isoTime(range.to) });
  const { resolutionSeconds, points } = await callApi('GET', `/history?${query}`);
  const perSecond = (count) => count / resolutionSeconds;
  return {
    range,
    points: points.map(({ at, requests, refused, failed, p50Ms, p99Ms, cache }) => ({
      at: Math.floor(Date.parse(at) / 1_000),
      requests: perSecond(requests),
      refused: perSecond(refused),
      failed: perSecond(failed),
      p50Ms,
      p99Ms,
      ...Object.fromEntries(Object.entries(cache).map(([name, count]) => [name, perSecond(count)])),
    })),
  };
}

const isoTime = (seconds) => new Date(seconds * 1_000).toISOString();

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
