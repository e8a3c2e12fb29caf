/** `npm run bench:budgets`: what one request costs in promises, timers, trips to the database and to Redis, and bytes, beside its budget. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { temporaryFolder } from '../test/kit/folder.ts';
import { measureAllocation } from './budgets/allocation.ts';
import { measureAsyncCounts } from './budgets/async-counts.ts';
import { budgets } from './budgets/limits.ts';
import type { Cost } from './budgets/measure.ts';
import { measurePromotion } from './budgets/promotion.ts';
import { measureRoundTrips } from './budgets/round-trips.ts';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { isInstalled } from './prerequisites.ts';
import { openTestbed } from './testbed.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'counts,round-trips,bytes,promoted' },
    requests: { type: 'string', default: '2000' },
    where: { type: 'boolean', default: false },
  },
});
const only = values.only.split(',');

await withCleanup(async (life) => {
  const testbed = await openTestbed(life, undefined);
  const folder = temporaryFolder(life);
  const costs: Cost[] = [];
  const add = (title: string, measured: readonly Cost[]) => {
    costs.push(...measured);
    console.log(`\n## ${title}\n`);
    const columns = ['request', 'contender', 'unit', 'measured', 'budget', ''];
    if (measured.some(({ ofLibraries }) => ofLibraries !== undefined)) columns.push('of libraries');
    console.log(formatTable(columns, measured.map(row)));
    if (values.where) for (const cost of measured) printPlaces(cost);
  };
  if (only.includes('counts'))
    add(
      'promises and timers of src/ and of libraries, one request alone',
      await measureAsyncCounts(testbed, folder),
    );
  if (only.includes('round-trips') && testbed.redisPort > 0 && isInstalled('postgres'))
    add('sequential trips to the database and to Redis', await measureRoundTrips(testbed, life));
  if (only.includes('bytes'))
    add('bytes allocated', await measureAllocation(testbed, folder, Number(values.requests)));
  if (only.includes('promoted'))
    add('bytes promoted', await measurePromotion(testbed, folder, 5 * Number(values.requests)));

  const results = join(import.meta.dirname, 'results');
  mkdirSync(results, { recursive: true });
  const report = { at: new Date().toISOString(), node: process.version, costs };
  writeFileSync(join(results, 'budgets.json'), `${JSON.stringify(report, undefined, 2)}\n`);
});

function row({ kind, contender, what, measured, budget, ofLibraries }: Cost): readonly string[] {
  const format = (value: number) => value.toFixed(what === 'promises' || what === 'timers' ? 0 : 1);
  const request = [budgets[kind].title, contender, what, format(measured)];
  if (budget === undefined) return [...request, '', 'baseline'];
  // The time of a round trip is known to a few milliseconds; a budget of bytes depends on a second measurement.
  const isWithin = Math.round(measured) <= Math.round(budget);
  return [...request, format(budget), isWithin ? 'within' : 'OVER', String(ofLibraries ?? '')];
}

function printPlaces({ kind, contender, what, places = [] }: Cost): void {
  if (places.length === 0) return;
  console.log(`\n${budgets[kind].title}, ${contender}: ${what}`);
  for (const [place, count] of places.toSorted(([, one], [, other]) => other - one))
    console.log(`  ${count} ${place}`);
}
