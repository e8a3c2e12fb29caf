/** `npm run bench`: measures Penstock beside other gateways on this machine. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { compare } from './compare.ts';
import { penstock, penstockWithoutBatches, twoPenstocks } from './contenders/penstock.ts';
import { formatComparison } from './format-table.ts';
import { maxForeignShare } from './measure/sample.ts';
import { wrkInstallHint } from './measure/wrk.ts';
import { installedContenders, installPackages, isInstalled } from './prerequisites.ts';
import { scenarios } from './scenarios.ts';
import { type Run, summarise } from './summary.ts';
import { openTestbed } from './testbed.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: scenarios.map(({ name }) => name).join() },
    contenders: { type: 'string', default: '' },
    connections: { type: 'string', default: '32,128' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '10' },
    processes: { type: 'string', default: '1' },
    'bank-delay': { type: 'string', default: '0' },
    'without-batches': { type: 'boolean', default: false },
  },
});
const wanted = values.contenders.toLowerCase().split(',');
const processes = Number(values.processes);
const benchOptions = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmUpSeconds: Number(values['warm-up']),
  loadProfiles: values.connections
    .split(',')
    .map((count) => ({ kind: 'closed' as const, connections: Number(count) })),
};

if (!isInstalled('wrk')) throw new Error(`wrk is not installed: ${wrkInstallHint}`);
if (!isInstalled('nginx'))
  console.log(
    'nginx is not installed: a node:http server simulates the bank and becomes the bottleneck earlier.',
  );
installPackages();

await withCleanup(async (life) => {
  const testbed = await openTestbed(life, processes, Number(values['bank-delay']));
  const place = (cores: readonly number[]) => (cores.length > 0 ? `core ${cores.join(', ')}` : 'any core');
  console.log(`Servers on ${place(testbed.cores.server)}, load and bank on ${place(testbed.cores.others)}.`);
  const results = [];
  for (const scenario of scenarios.filter(({ name }) => values.only.split(',').includes(name))) {
    if (scenario.upstream === 'tls' && !isInstalled('openssl')) {
      console.log(`${scenario.name} is skipped: openssl, which issues its certificates, is not on the PATH.`);
      continue;
    }
    const all = [...scenario.contenders, ...(processes > 1 ? [twoPenstocks] : [])];
    const compareBatches = values['without-batches'] && all.includes(penstock);
    if (compareBatches) all.push(penstockWithoutBatches);
    const baselines = [...scenario.baselines, ...(compareBatches ? [penstock.name] : [])];
    const chosen = all.filter(({ name }) => wanted.some((part) => name.toLowerCase().includes(part)));
    const contenders = installedContenders(chosen, console.log);
    console.log(`\n## ${scenario.title}\n`);
    const runs = await compare(testbed, { ...scenario, contenders }, benchOptions, logRun);
    const profiles = [...new Set(runs.map(({ loadProfile }) => loadProfile))];
    for (const profile of profiles) {
      const lines = summarise(
        runs.filter((run) => run.loadProfile === profile),
        baselines,
      );
      const table = formatComparison(lines, baselines, scenario.comparison, scenario.p99Baselines);
      console.log(`\n${profile}\n\n${table}`);
      results.push({ scenario: scenario.name, loadProfile: profile, lines });
    }
  }
  writeResults(results);
});

/** Writes one run to standard error; only the tables go to standard output. */
function logRun({
  contender,
  loadProfile,
  round,
  requestsPerSecond,
  cpuMicros,
  foreignShare,
  errors,
}: Run): void {
  const notes = [
    foreignShare > maxForeignShare
      ? `disturbed: other processes took ${Math.round(foreignShare * 100)} %`
      : [],
    errors > 0 ? `${errors} ERRORS` : [],
  ].flat();
  const figures = `${Math.round(requestsPerSecond)}/s, ${cpuMicros.toFixed(1)} µs`;
  console.error([`round ${round}: ${contender}, ${loadProfile}: ${figures}`, ...notes].join('; '));
}

function writeResults(results: readonly object[]): void {
  const folder = join(import.meta.dirname, 'results');
  mkdirSync(folder, { recursive: true });
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, load: loadavg(), node: process.version };
  const report = { at: new Date().toISOString(), machine, ...benchOptions, processes, results };
  writeFileSync(join(folder, 'latest.json'), `${JSON.stringify(report, undefined, 2)}\n`);
}
