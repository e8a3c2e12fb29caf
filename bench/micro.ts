/** `npm run bench:micro`: what the hot parts cost, one by one, each in a loop of its own. */

import { parseArgs } from 'node:util';
import { timeOf } from './measure/loop.ts';
import { median, spread } from './measure/statistics.ts';
import { parts } from './micro-parts.ts';
import { tableOf } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '7' },
    ms: { type: 'string', default: '200' },
  },
});
const chosen = parts.filter(({ name }) => values.only.split(',').some((part) => name.includes(part)));

// In rounds, like the contenders: whatever disturbs the machine for a while then hits all of them.
const timesNs = new Map(chosen.map(({ name }) => [name, [] as number[]]));
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const { name, once } of chosen) {
    const ns = await timeOf(once, Number(values.ms));
    if (round > 0) timesNs.get(name)?.push(ns); // the first round warms up
  }
}

const rows = Array.from(timesNs, ([name, ns]) => [
  name,
  Math.round(median(ns)).toLocaleString('en'),
  Math.round(Math.min(...ns)).toLocaleString('en'),
  `${Math.round(spread(ns) * 100)} %`,
]);
console.log(tableOf(['part', 'ns/op', 'least', 'spread'], rows));
