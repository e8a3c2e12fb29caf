/**
 * `npm run bench:contract`: what the contract guard costs in CPU time. One gateway has two environments, one with the guard and one
 * without. The load changes between them several times a second, so that the speed of the machine, which changes within seconds,
 * affects both in the same way.
 */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { penstockWithAndWithoutContract } from './contenders/penstock.ts';
import { formatTable } from './format-table.ts';
import { type AlternatingWindow, alternate, type Target } from './measure/alternate.ts';
import { initiatePayment } from './measure/request-once.ts';
import { median, percentile } from './measure/statistics.ts';
import { openTestbed } from './testbed.ts';
import { initiation, paymentRequest } from './traffic.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'get,post' },
    contracts: { type: 'string', default: '1,2' },
    rounds: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '20' },
    'warm-up': { type: 'string', default: '10' },
  },
});

const environments = ['unchecked', 'checked'] as const;

await withCleanup(async (life) => {
  const testbed = await openTestbed(life, 1);
  const all = new Map<string, number[]>();
  for (let round = 1; round <= Number(values.rounds); round++)
    for (const contracts of values.contracts.split(','))
      for (const only of values.only.split(',')) {
        const name = `${only.toUpperCase()}, ${contracts === '1' ? 'one contract' : 'two contracts'}`;
        const windows = await testbed.withContender(
          penstockWithAndWithoutContract(
            contracts === '1' ? 1 : 2,
            isChangedIn(round, 1) ? 'checked' : 'unchecked',
          ),
          async ({ port, pids }) => {
            const targets: Target[] = [];
            // Without the guard on both sides, the second environment costs up to 2 % more.
            for (const environment of isChangedIn(round, 2) ? environments.toReversed() : environments) {
              const { path } = only === 'post' ? initiation : paymentRequest(await pay(port, environment));
              targets.push({ environment, path });
            }
            const request = only === 'post' ? initiation : paymentRequest('');
            const load = (seconds: number) =>
              alternate(request, targets, { port, pids, seconds }, testbed.cores.others);
            await load(Number(values['warm-up']));
            return load(Number(values.seconds));
          },
        );
        const ratios = ratiosOf(windows);
        all.set(name, [...(all.get(name) ?? []), ...ratios]);
        console.error(`round ${round}: ${name}: ${describe(windows)}; ${formatRatios(ratios).join(' ')}`);
      }
  const columns = ['CPU time with the guard / without', 'median', 'quartiles', 'windows'];
  console.log(
    formatTable(
      columns,
      [...all].map(([name, ratios]) => [name, ...formatRatios(ratios)]),
    ),
  );
});

/** Whether a property that changes every so many rounds is changed in this one. */
function isChangedIn(round: number, every: number): boolean {
  return Math.floor((round - 1) / every) % 2 === 1;
}

function pay(port: number, environment: string): Promise<string> {
  const headers = { ...initiation.headers, 'Penstock-Environment': environment };
  return initiatePayment(port, { ...initiation, headers });
}

/** Of each window with the guard, to the mean of its neighbours without it. */
function ratiosOf(windows: readonly AlternatingWindow[]): readonly number[] {
  return windows.flatMap((window, at) => {
    const before = windows[at - 1];
    const after = windows[at + 1];
    if (window.environment === 'unchecked' || !before || !after) return [];
    return [window.cpuMicros / ((before.cpuMicros + after.cpuMicros) / 2)];
  });
}

function describe(windows: readonly AlternatingWindow[]): string {
  const [without, withGuard] = environments.map((name) =>
    median(windows.filter(({ environment }) => environment === name).map(({ cpuMicros }) => cpuMicros)),
  );
  return `${without?.toFixed(1)} and ${withGuard?.toFixed(1)} µs`;
}

function formatRatios(ratios: readonly number[]): readonly string[] {
  const quartiles = [0.25, 0.75].map((part) => percentile(ratios, part).toFixed(2));
  return [median(ratios).toFixed(3), quartiles.join(' to '), String(ratios.length)];
}
