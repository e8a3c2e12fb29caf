/** `npm run bench:soak`: does Penstock stay as it is, for long, with many payments, with many connections? */

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { temporaryFolder } from '../test/kit/folder.ts';
import { penstock, penstockOnRedis } from './contenders/penstock.ts';
import { during } from './life.ts';
import { asConnectionsGrow, asPaymentsGrow } from './soak/growth.ts';
import { createMixedLoad } from './soak/mixed-load.ts';
import { verdictsOn, vitalsIn } from './soak/vitals.ts';
import { tableOf } from './table.ts';
import { openStage } from './testbed.ts';

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
const contender = values.state === 'memory' ? penstock : penstockOnRedis;

await during(async (life) => {
  const stage = await openStage(life, 1);
  const file = join(temporaryFolder(life), 'vitals');
  // The contenders' processes inherit it.
  Object.assign(process.env, { BENCH_VITALS: file });
  process.env.BENCH_NODE_OPTIONS = `--import=${join(import.meta.dirname, 'programs/vitals.ts')}`;

  if (Number(values.minutes) > 0) {
    console.log(`\n## ${contender.name}, ${values.rate} mixed requests a second, ${values.minutes} min\n`);
    await stage.with(contender, async ({ port, pids }) => {
      const load = createMixedLoad(port, Number(values.rate));
      const vitals = await vitalsIn(file, pids, () => load.run(Number(values.minutes) * 60_000));
      console.log(`${tableOf(['', 'asked', 'as expected', 'else'], load.counts())}\n`);
      if (load.otherwise().length > 0) console.log(`${tableOf(['else', 'times'], load.otherwise())}\n`);
      console.log(tableOf(['', 'first', 'last', 'a minute', 'verdict'], verdictsOn(vitals)));
    });
  }
  for (const [title, measure, sizes] of [
    ['payments remembered', asPaymentsGrow, numbers(values.payments)],
    ['connections', asConnectionsGrow, numbers(values.connections)],
  ] as const) {
    if (sizes.length === 0) continue;
    console.log(`\n## ${contender.name}, as ${title} grow\n`);
    const rows = await stage.with(contender, (server) => measure(server, sizes, stage.places.others));
    console.log(tableOf([title, 'CPU µs a request', 'p50 ms', 'p99 ms', 'errors', 'RSS MiB'], rows));
  }
});
