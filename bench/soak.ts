/** `npm run bench:soak`: long runs, many stored payments, many connections. */

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { temporaryFolder } from '../test/kit/folder.ts';
import { withCleanup } from './cleanup.ts';
import { penstock, penstockOnPostgres } from './contenders/penstock.ts';
import { formatTable } from './format-table.ts';
import { measureByConnections, measureByPayments } from './soak/growth.ts';
import { createMixedLoad } from './soak/mixed-load.ts';
import { growthTable, recordStats } from './soak/process-stats.ts';
import { openTestbed } from './testbed.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    state: { type: 'string', default: 'redis' },
    payments: { type: 'string', default: '1000,10000,100000,1000000' },
    connections: { type: 'string', default: '10,100,1000,5000' },
  },
});
const numbers = (list: string) =>
  list
    .split(',')
    .filter((text) => text !== '')
    .map(Number);
const contender = values.state === 'memory' ? penstock : penstockOnPostgres;

await withCleanup(async (life) => {
  const testbed = await openTestbed(life, 1);
  const file = join(temporaryFolder(life), 'vitals');
  // Inherited by the contenders' processes.
  Object.assign(process.env, { BENCH_VITALS: file });
  process.env.BENCH_NODE_OPTIONS = `--import=${join(import.meta.dirname, 'programs/vitals.ts')}`;

  if (Number(values.minutes) > 0) {
    console.log(`\n## ${contender.name}, ${values.rate} mixed requests a second, ${values.minutes} min\n`);
    await testbed.withContender(contender, async ({ port, pids }) => {
      const load = createMixedLoad(port, Number(values.rate));
      const vitals = await recordStats(file, pids, () => load.run(Number(values.minutes) * 60_000));
      console.log(`${formatTable(['', 'sent', 'as expected', 'unexpected'], load.counts())}\n`);
      if (load.unexpected().length > 0)
        console.log(`${formatTable(['unexpected', 'times'], load.unexpected())}\n`);
      console.log(formatTable(['', 'first', 'last', 'a minute', 'verdict'], growthTable(vitals)));
    });
  }
  for (const [title, measure, sizes] of [
    ['payments stored', measureByPayments, numbers(values.payments)],
    ['connections', measureByConnections, numbers(values.connections)],
  ] as const) {
    if (sizes.length === 0) continue;
    console.log(`\n## ${contender.name}, as ${title} grow\n`);
    const rows = await testbed.withContender(contender, (server) =>
      measure(server, sizes, testbed.cores.others),
    );
    console.log(formatTable([title, 'CPU µs a request', 'p50 ms', 'p99 ms', 'errors', 'RSS MiB'], rows));
  }
});
