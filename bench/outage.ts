/** `npm run bench:outage`: how long Penstock takes when Redis, the bank or its clients fail. */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { measureCircuit, measureLearntRate, measureSharedRate } from './outage/bank.ts';
import { measureCertificate, measureQueue, measureSlowClients } from './outage/clients.ts';
import type { Measure } from './outage/measure.ts';
import { measureStalls } from './outage/stalls.ts';
import { measureFleet, measureStatusReads, measureSwitch } from './outage/state.ts';

const parts: Readonly<Record<string, readonly [title: string, measure: Measure]>> = {
  redis: ['two instances while Redis is killed or frozen', measureFleet],
  stalls: ['stalls of Redis, by the timeout of its commands; for each stall', measureStalls],
  status: ['status reads of one instance while Redis fails', measureStatusReads],
  switch: ['a switch of the environment', measureSwitch],
  circuit: ['requests while the circuit is open', measureCircuit],
  rate: ['three instances that share 50 calls per second', measureSharedRate],
  learnt: ['a bank that allows 5 calls per second instead of 50', measureLearntRate],
  clients: ['1,000 slow clients', measureSlowClients],
  queue: ['1,000 queued calls and 10,000 connections', measureQueue],
  certificate: ['a certificate that is replaced on the disk', measureCertificate],
};

const { values } = parseArgs({ options: { only: { type: 'string', default: Object.keys(parts).join() } } });

for (const name of values.only.split(',')) {
  const part = parts[name];
  if (!part) throw new Error(`--only takes ${Object.keys(parts).join(', ')}; not ${name}`);
  const [title, measure] = part;
  await withCleanup(async (life) => {
    const rows = await measure(life);
    console.log(`\n## ${name}: ${title}\n\n${formatTable(['', 'measured', 'goal'], rows)}`);
  });
}
