/**
 * `npm run bench:webhooks`: webhooks while everything around them fails, and a million subscriptions. Exits with 1 if a promise is
 * broken.
 */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { measureLosses } from './webhooks/losses.ts';
import { measureMillion } from './webhooks/million.ts';
import { runInOwnNetwork } from './webhooks/own-network.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'losses,million' },
    /** Of `losses`: it runs in a network of its own, which this process enters by starting itself again. */
    'own-network': { type: 'boolean', default: false },
    instances: { type: 'string', default: '3' },
    tenants: { type: 'string', default: '10' },
    subscriptions: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '1500' },
    /** Of `million`. */
    stored: { type: 'string', default: '1000000' },
    rates: { type: 'string', default: '50,500,2500' },
    seconds: { type: 'string', default: '60' },
  },
});

const parts: Readonly<Record<string, () => Promise<void>>> = {
  async losses() {
    if (!values['own-network']) {
      const args = [import.meta.filename, ...process.argv.slice(2), '--only', 'losses', '--own-network'];
      process.exitCode ||= await runInOwnNetwork(process.execPath, args);
      return;
    }
    await withCleanup(async (life) => {
      const { rows, faults } = await measureLosses(life, {
        subscriptions: Number(values.subscriptions),
        tenants: Number(values.tenants),
        instances: Number(values.instances),
        rate: Number(values.rate),
      });
      console.log(`\n## losses\n\n${formatTable(['', 'measured'], rows)}`);
      for (const fault of faults) console.log(`BROKEN: ${fault}`);
      if (faults.length > 0) process.exitCode = 1;
    });
  },
  million: () =>
    withCleanup(async (life) => {
      const rows = await measureMillion(life, {
        subscriptions: Number(values.stored),
        rates: values.rates.split(',').map(Number),
        seconds: Number(values.seconds),
      });
      console.log(`\n## million\n\n${formatTable(['', 'measured'], rows)}`);
    }),
};

for (const name of values.only.split(',')) {
  const part = parts[name];
  if (!part) throw new Error(`--only takes ${Object.keys(parts).join(', ')}; not ${name}`);
  await part();
}
