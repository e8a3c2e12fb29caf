/** `npm run bench:tenants`: what one disruptive tenant costs the payments of the others. */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { disruptions, measureDisruption } from './tenants/disruption.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(disruptions).join() },
    tenants: { type: 'string', default: '2,3,10' },
    instances: { type: 'string', default: '1,2' },
    seconds: { type: 'string', default: '60' },
  },
});
const numbers = (list: string) => list.split(',').map(Number);

const rows: (readonly string[])[] = [];
for (const name of values.only.split(',')) {
  const disruption = disruptions[name];
  if (!disruption) throw new Error(`--only takes ${Object.keys(disruptions).join(', ')}; not ${name}`);
  for (const instances of numbers(values.instances)) {
    for (const tenants of numbers(values.tenants)) {
      await withCleanup(async (life) => {
        const run = { tenants, instances, forMs: Number(values.seconds) * 1_000 };
        rows.push([name, `${instances}`, `${tenants}`, ...(await measureDisruption(life, disruption, run))]);
        console.error(rows.at(-1)?.join(' | '));
      });
    }
  }
}
console.log(`\n## one disruptive tenant, ${values.seconds} s; payments of the other tenants\n`);
const columns = [
  'disruptive tenant',
  'instances',
  'tenants',
  'payments',
  'accepted',
  'slowest',
  'not accepted',
];
console.log(formatTable(columns, rows));
