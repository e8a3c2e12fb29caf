/** `npm run bench`: Penstock beside others, on this machine, now. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compare, type Run } from './compare.ts';
import { twoPenstocks } from './contenders/penstock.ts';
import { during } from './life.ts';
import { tolerated } from './measure/sample.ts';
import { howToGetWrk } from './measure/wrk.ts';
import { installed, installPackages, isInstalled } from './needs.ts';
import { scenarios } from './scenarios.ts';
import { summarise } from './summary.ts';
import { comparisonOf } from './table.ts';
import { openStage } from './testbed.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'get,post,cached,cached-redis,latency,latency-cached,steady' },
    contenders: { type: 'string', default: '' },
    connections: { type: 'string', default: '32,128' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '5' },
    processes: { type: 'string', default: '1' },
  },
});
const wanted = values.contenders.toLowerCase().split(',');
const processes = Number(values.processes);
const effort = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmUpSeconds: Number(values['warm-up']),
  pressures: values.connections
    .split(',')
    .map((count) => ({ kind: 'closed' as const, connections: Number(count) })),
};

if (!isInstalled('wrk')) throw new Error(`There is no wrk to make load with: ${howToGetWrk}`);
if (!isInstalled('nginx'))
  console.log('There is no nginx: the bank is a node:http one, and binds before nginx would.');
installPackages();

await during(async (life) => {
  const stage = await openStage(life, processes);
  const place = (cores: readonly number[]) => (cores.length > 0 ? `core ${cores.join(', ')}` : 'any core');
  console.log(`Servers on ${place(stage.places.server)}, load and bank on ${place(stage.places.others)}.`);
  const results = [];
  for (const scenario of scenarios.filter(({ name }) => values.only.split(',').includes(name))) {
    const all = processes > 1 ? [...scenario.contenders, twoPenstocks] : scenario.contenders;
    const chosen = all.filter(({ name }) => wanted.some((part) => name.toLowerCase().includes(part)));
    const contenders = installed(chosen, console.log);
    console.log(`\n## ${scenario.title}\n`);
    const runs = await compare(stage, { ...scenario, contenders }, effort, say);
    const pressures = [...new Set(runs.map(({ pressure }) => pressure))];
    for (const pressure of pressures) {
      const lines = summarise(
        runs.filter((run) => run.pressure === pressure),
        scenario.beside,
      );
      console.log(`\n${pressure}\n\n${comparisonOf(lines, scenario.beside, scenario.comparison)}`);
      results.push({ scenario: scenario.name, pressure, lines });
    }
  }
  keep(results);
});

/** One run, on standard error: the tables alone stand on standard output. */
function say({ contender, pressure, round, requestsPerSecond, cpuMicros, foreign, errors }: Run): void {
  const notes = [
    foreign > tolerated ? `disturbed: others took ${Math.round(foreign * 100)} %` : [],
    errors > 0 ? `${errors} ERRORS` : [],
  ].flat();
  const figures = `${Math.round(requestsPerSecond)}/s, ${cpuMicros.toFixed(1)} µs`;
  console.error([`round ${round}: ${contender}, ${pressure}: ${figures}`, ...notes].join('; '));
}

function keep(results: readonly object[]): void {
  const folder = join(import.meta.dirname, 'results');
  mkdirSync(folder, { recursive: true });
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, load: loadavg(), node: process.version };
  const whole = { at: new Date().toISOString(), machine, ...effort, processes, results };
  writeFileSync(join(folder, 'latest.json'), `${JSON.stringify(whole, undefined, 2)}\n`);
}
