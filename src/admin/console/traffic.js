/** The charts: requests, latencies, status reads, what waits, circuits. */

import { createChart, createStrips } from './chart.js';
import { wordsOf } from './circuit-rows.js';
import { byId, duration } from './dom.js';

const number = (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 });
const perSecond = (value) => `${number(value)}/s`;

/** An environment may be called `at`, like the time of a sample. */
const of = (environment) => `of ${environment}`;

/** For as many environments as there are. */
const tones = ['accent', 'violet', 'amber', 'red', 'grey', 'pale'];

export function createTraffic() {
  const place = byId('charts');
  const requests = createChart({
    title: 'Requests',
    series: [
      { name: 'requests', label: 'all', tone: 'accent' },
      { name: 'failed', label: 'failed at the bank', tone: 'red' },
      { name: 'refused', label: 'refused here', tone: 'violet' },
    ],
    least: 5,
    words: perSecond,
  });
  const latency = createChart({
    title: 'Time to answer',
    series: [
      { name: 'p50Ms', label: 'half of them (p50)', tone: 'accent' },
      { name: 'p99Ms', label: '99 of 100 (p99)', tone: 'violet' },
    ],
    least: 20,
    words: duration,
  });
  const reads = createChart({
    title: 'Status reads answered from',
    stacked: true,
    series: [
      { name: 'hit', label: 'cache', tone: 'accent' },
      { name: 'shared', label: 'a shared question', tone: 'pale' },
      { name: 'miss', label: 'the bank', tone: 'violet' },
      { name: 'stale', label: 'stale cache', tone: 'amber' },
      { name: 'bypass', label: 'bypass', tone: 'grey' },
    ],
    least: 5,
    words: perSecond,
  });
  const circuits = createStrips({ title: 'Circuits', words: (state) => wordsOf(state ?? 'unknown') });
  let queues;
  let queueNames = '';
  place.replaceChildren(requests.element, latency.element, reads.element, circuits.element);

  return ({ seconds, samples, environments }) => {
    const names = environments.map(({ name }) => name);
    if (names.join() !== queueNames) {
      queueNames = names.join();
      queues?.element.remove();
      queues = createChart({
        title: 'Waiting for a turn',
        size: 'half',
        series: names.map((name, index) => ({
          name: of(name),
          label: name,
          tone: tones[index % tones.length],
        })),
        least: 10,
        words: number,
      });
      circuits.element.before(queues.element);
    }
    const now = Math.max(samples.at(-1)?.at ?? 0, seconds.at(-1)?.at ?? 0);
    requests.draw(seconds, now);
    latency.draw(seconds, now);
    reads.draw(
      seconds.map(({ at, cache }) => ({ at, ...cache })),
      now,
    );
    queues.draw(
      samples.map(({ at, waiting }) => ({
        at,
        ...Object.fromEntries(Object.entries(waiting).map(([name, calls]) => [of(name), calls])),
      })),
      now,
    );
    circuits.draw(
      samples.map(({ at, circuits: states }) => ({ at, states })),
      now,
    );
  };
}
