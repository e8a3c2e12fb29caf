/**
 * `npm run bench:webhooks`: webhooks while everything around them fails, beside an endpoint that hangs, and with many subscriptions. Exits
 * with 1 if a promise is broken.
 */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { type Losses, measureLosses } from './webhooks/losses.ts';
import { measureMany } from './webhooks/many-subscriptions.ts';
import { runInOwnNetwork } from './webhooks/own-network.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'losses,hanging,many' },
    database: { type: 'string', default: 'postgres' },
    /** Of `losses` and `hanging`: they run in a network of their own, which this process enters by starting itself again. */
    'own-network': { type: 'boolean', default: false },
    /** With SQLite, there is one. */
    instances: { type: 'string', default: '3' },
    subscriptions: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '1500' },
    /** Of `many`. */
    stored: { type: 'string', default: '100000' },
    rates: { type: 'string', default: '50,500,2500' },
    seconds: { type: 'string', default: '60' },
  },
});
const { database: dialect } = values;
if (dialect !== 'postgres' && dialect !== 'sqlite') throw new Error('--database takes postgres or sqlite');

const runInNetwork = async (losses: Losses): Promise<void> => {
  if (!values['own-network']) {
    const args = [import.meta.filename, ...process.argv.slice(2), '--only', losses, '--own-network'];
    process.exitCode ||= await runInOwnNetwork(process.execPath, args);
    return;
  }
  await withCleanup(async (life) => {
    const { rows, faults } = await measureLosses(life, losses, {
      dialect,
      subscriptions: Number(values.subscriptions),
      instances: dialect === 'sqlite' ? 1 : Number(values.instances),
      rate: Number(values.rate),
    });
    console.log(`\n## ${losses}, ${dialect}\n\n${formatTable(['', 'measured'], rows)}`);
    for (const fault of faults) console.log(`BROKEN: ${fault}`);
    if (faults.length > 0) process.exitCode = 1;
  });
};

const parts: Readonly<Record<string, () => Promise<void>>> = {
  losses: () => runInNetwork('losses'),
  hanging: () => runInNetwork('hanging'),
  many: () =>
    withCleanup(async (life) => {
      const rows = await measureMany(life, {
        dialect,
        subscriptions: Number(values.stored),
        rates: values.rates.split(',').map(Number),
        seconds: Number(values.seconds),
      });
      console.log(`\n## many, ${dialect}\n\n${formatTable(['', 'measured'], rows)}`);
    }),
};

for (const name of values.only.split(',')) {
  const part = parts[name];
  if (!part) throw new Error(`--only takes ${Object.keys(parts).join(', ')}; not ${name}`);
  await part();
}
