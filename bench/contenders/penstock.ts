/** Penstock from this checkout, with every feature on and with limits that do not bind. */

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { migrateDatabase } from '../../src/store/gateway-database.ts';
import type { Launch } from '../measure/program.ts';
import { apiKey } from '../traffic.ts';
import type { Contender, ContenderEnvironment } from './contender.ts';
import { runOnNode } from './node.ts';

/** State in memory. */
export const penstock: Contender = {
  name: 'Penstock',
  forwards: true,
  launches: (surroundings) => [launch(surroundings, { state: {} })],
};

/** Without the batch scheduler, each request passes the pipeline on its own: what its code costs. */
export const penstockWithoutBatches: Contender = {
  name: 'Penstock, batch scheduler off',
  forwards: true,
  launches: (surroundings) => [
    launch(surroundings, { state: {}, nodeOptions: [`--import=${withoutBatches}`] }),
  ],
};

/**
 * Two environments, `unchecked` without the contract guard, and `checked` with it. The bank has a name in one and an address in the other.
 *
 * @param contracts that requests are checked against
 * @param named the environment with the name
 */
export const penstockWithAndWithoutContract = (
  contracts: 1 | 2,
  named: 'unchecked' | 'checked',
): Contender => ({
  name: 'Penstock',
  forwards: true,
  launches: (surroundings) => [
    launch(surroundings, {
      state: {},
      environments: (bank) => ({
        active: 'neither', // the active environment may cost less
        neither: { baseUrl: `${bank}/neither`, standardVersion: '1.3.11' },
        unchecked: {
          baseUrl: named === 'unchecked' ? withName(bank) : bank,
          standardVersion: contracts === 1 ? '1.3.11' : '1.3.6',
          contract: { requests: 'off', responses: 'off' },
        },
        checked: { baseUrl: named === 'checked' ? withName(bank) : bank, standardVersion: '1.3.11' },
      }),
    }),
  ],
});

const withName = (bank: string) => bank.replace('127.0.0.1', 'localhost');

async function migratePostgres({ postgresUrl }: ContenderEnvironment): Promise<void> {
  await migrateDatabase({ postgres: postgresUrl, file: null });
}

/** As several instances have it: payments in PostgreSQL, statuses and rates in Redis if it is installed. */
export const penstockOnPostgres: Contender = {
  name: 'Penstock on PostgreSQL and Redis',
  requiredProgram: 'postgres',
  forwards: true,
  prepare: migratePostgres,
  launches: (surroundings) => [launch(surroundings, { state: onPostgres(surroundings) })],
};

/** In a file, as a single instance has it: each commit is on disk. */
export const penstockOnFile: Contender = {
  name: 'Penstock on a SQLite file',
  forwards: true,
  async prepare({ folder }) {
    await migrateDatabase({ postgres: null, file: join(folder, 'state.db') });
  },
  launches: (surroundings) => [
    launch(surroundings, { state: { file: join(surroundings.folder, 'state.db') } }),
  ],
};

/** Two processes that share a port and the database. */
export const twoPenstocks: Contender = {
  ...penstockOnPostgres,
  name: 'Penstock × 2 on PostgreSQL and Redis',
  launches: (surroundings) =>
    [1, 2].map((number) =>
      launch(surroundings, { number, state: onPostgres(surroundings), listen: { reusePort: true } }),
    ),
};

const withoutBatches = join(import.meta.dirname, '../programs/without-batches.ts');
const hash = (key: string) => createHash('sha256').update(key).digest('hex');
const unbound = { rate: '100000/s', burst: 1_000_000 };

/** As patient as possible: on a busy machine, Redis may be late without a fault. */
const onPostgres = ({ postgresUrl, redisPort }: ContenderEnvironment) => ({
  postgres: postgresUrl,
  ...(redisPort && { redis: `redis://127.0.0.1:${redisPort}/0`, timeout: '2s' }),
});

interface Variant {
  readonly state: object;
  /** The number of the process, counted from 1. */
  readonly number?: number;
  readonly listen?: object;
  readonly nodeOptions?: readonly string[];
  /** @param bank its base URL. Default: two environments, which implement the same version */
  readonly environments?: (bank: string) => object;
}

function launch(
  { port, upstreamPort, upstreamTls: tls, folder }: ContenderEnvironment,
  { state, number = 1, listen, nodeOptions, environments }: Variant,
): Launch {
  const bank = `${tls ? 'https' : 'http'}://127.0.0.1:${upstreamPort}`;
  const file = join(folder, `penstock-${number}.yaml`);
  writeFileSync(
    file,
    stringify({
      listen: { port, publicUrl: 'https://gateway.example', ...listen },
      admin: { port: 0 },
      clients: [
        { name: 'shop', apiKeySha256: hash(apiKey), quota: unbound },
        { name: 'rival', apiKeySha256: hash('another key'), quota: unbound },
      ],
      environments: environments?.(bank) ?? {
        active: 'sandbox',
        sandbox: { baseUrl: bank, standardVersion: '1.3.11', tls },
        production: { baseUrl: `${bank}/psd2`, standardVersion: '1.3.11', tls },
      },
      state,
      upstream: { maxSockets: 256 },
      shaping: { ...unbound, maxConcurrent: 256, queue: 100_000 },
    }),
  );
  return runOnNode('../src/main.ts', ['serve', '--config', file], nodeOptions);
}
