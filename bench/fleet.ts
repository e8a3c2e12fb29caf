/** `npm run bench:fleet`: what the instances of a fleet cost while they are idle: statements, CPU and WAL. */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { measureFleet } from './fleet/idle-fleet.ts';
import { formatTable } from './format-table.ts';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '1,10' },
    seconds: { type: 'string', default: '60' },
  },
});

const rows: (readonly string[])[] = [];
for (const instances of values.instances.split(',').map(Number)) {
  await withCleanup(async (life) => {
    const row = await measureFleet(life, { instances, seconds: Number(values.seconds) });
    rows.push([`${instances}`, ...row]);
    console.error(rows.at(-1)?.join(' | '));
  });
}
const columns = ['instances', 'statements/s each', 'CPU of PostgreSQL, %', 'CPU each, %', 'WAL kB/s'];
console.log(`\n${formatTable(columns, rows)}`);
