/** `npm run bench:micro`: measures the parts of the hot path, each in its own loop. */

import { parseArgs } from 'node:util';
import { formatTable } from './format-table.ts';
import { cpuNsPerIteration } from './measure/cpu-loop.ts';
import { median, spread } from './measure/statistics.ts';
import { parts } from './micro-parts.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '7' },
    ms: { type: 'string', default: '200' },
  },
});
const chosen = parts.filter(({ name }) => values.only.split(',').some((part) => name.includes(part)));

// Interleaved rounds, so that a temporary disturbance of the machine affects all parts.
const timesNs = new Map(chosen.map(({ name }) => [name, [] as number[]]));
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const { name, body } of chosen) {
    const ns = await cpuNsPerIteration(body, Number(values.ms));
    if (round > 0) timesNs.get(name)?.push(ns); // the first round warms up
  }
}

const rows = Array.from(timesNs, ([name, ns]) => [
  name,
  Math.round(median(ns)).toLocaleString('en'),
  Math.round(Math.min(...ns)).toLocaleString('en'),
  `${Math.round(spread(ns) * 100)} %`,
]);
console.log(formatTable(['part', 'ns/op', 'least', 'spread'], rows));
