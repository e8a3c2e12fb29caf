/** Counts the promises and timers of single requests. */

import { penstock, penstockOnPostgres } from '../contenders/penstock.ts';
import { installedContenders } from '../prerequisites.ts';
import type { Testbed } from '../testbed.ts';
import { budgets, requestKinds } from './limits.ts';
import { type Cost, withProbedContender } from './measure.ts';

const warmUpRequests = 50;
/** Background work adds to some of them, so the median counts. */
const countedRequests = 15;

export async function measureAsyncCounts(testbed: Testbed, folder: string): Promise<readonly Cost[]> {
  const costs: Cost[] = [];
  for (const contender of installedContenders([penstock, penstockOnPostgres], console.log))
    await withProbedContender(testbed, contender, { folder, connections: 1 }, async ({ probe, send }) => {
      for (const kind of requestKinds) {
        for (let sent = 0; sent < warmUpRequests; sent++) await send(kind);
        const counts = [];
        for (let sent = 0; sent < countedRequests; sent++) counts.push(await probe.count(() => send(kind)));
        for (const [what, library] of [
          ['promises', 'libraryPromises'],
          ['timers', 'libraryTimers'],
        ] as const) {
          const sorted = counts.toSorted((one, other) => one[what] - other[what]);
          const middle = sorted[Math.floor(countedRequests / 2)];
          if (!middle) continue;
          costs.push({
            what,
            kind,
            contender: contender.name,
            measured: middle[what],
            budget: budgets[kind][what],
            ofLibraries: middle[library],
            places: middle.places.filter(([place]) => what.startsWith(place.split(':')[0] ?? '')),
          });
        }
      }
    });
  return costs;
}
