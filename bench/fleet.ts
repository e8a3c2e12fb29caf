/** `npm run bench:fleet`: what the instances of a fleet cost while they are idle: operations of Redis, and CPU. */

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
const columns = [
  'instances',
  'PUBLISH/s each',
  'commands/s each',
  'CPU of Redis, %',
  'CPU each, %',
  'received kB/s each',
];
console.log(`\n${formatTable(columns, rows)}`);
