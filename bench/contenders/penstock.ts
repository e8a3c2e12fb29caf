/** Penstock from this checkout, with every feature on and with limits that do not bind. */

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
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

/** Without the contract guard: no request and no answer is checked against the standard. */
export const penstockWithoutContract: Contender = {
  name: 'Penstock, contract guard off',
  forwards: true,
  launches: (surroundings) => [
    launch(surroundings, { state: {}, contract: { requests: 'off', responses: 'off' } }),
  ],
};

/** Each request is also checked against the contract of the other environment, which implements another version. */
export const penstockWithTwoContracts: Contender = {
  name: 'Penstock, two contracts',
  forwards: true,
  launches: (surroundings) => [launch(surroundings, { state: {}, otherVersion: '1.3.6' })],
};

/** State on Redis. */
export const penstockOnRedis: Contender = {
  name: 'Penstock on Redis',
  requiredProgram: 'redis-server',
  forwards: true,
  launches: (surroundings) => [launch(surroundings, { state: onRedis(surroundings) })],
};

/** State on a Redis with a replica, which confirms the record of each payment before it is sent. */
export const penstockWithReplica: Contender = {
  name: 'Penstock on Redis with a replica',
  requiredProgram: 'redis-server',
  forwards: true,
  launches: (surroundings) => [launch(surroundings, { state: stateOn(surroundings.replicatedRedisPort) })],
};

/** Two processes that share a port and the state. */
export const twoPenstocks: Contender = {
  name: 'Penstock × 2 on Redis',
  requiredProgram: 'redis-server',
  forwards: true,
  launches: (surroundings) =>
    [1, 2].map((number) =>
      launch(surroundings, { number, state: onRedis(surroundings), listen: { reusePort: true } }),
    ),
};

const withoutBatches = join(import.meta.dirname, '../programs/without-batches.ts');
const hash = (key: string) => createHash('sha256').update(key).digest('hex');
const unbound = { rate: '100000/s', burst: 1_000_000 };

/** As patient as possible: on a busy machine, Redis may be late without a fault. */
const stateOn = (redisPort: number) => ({
  redis: `redis://127.0.0.1:${redisPort}/0`,
  timeout: '2s',
  confirm: { timeout: '800ms' },
});
const onRedis = ({ redisPort }: ContenderEnvironment) => stateOn(redisPort);

interface Variant {
  readonly state: object;
  /** The number of the process, counted from 1. */
  readonly number?: number;
  readonly listen?: object;
  readonly nodeOptions?: readonly string[];
  readonly contract?: object;
  /** `standardVersion` of the environment that gets no requests. */
  readonly otherVersion?: string;
}

function launch(
  { port, upstreamPort, upstreamTls: tls, folder }: ContenderEnvironment,
  { state, number = 1, listen, nodeOptions, contract, otherVersion = '1.3.11' }: Variant,
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
      environments: {
        active: 'sandbox',
        sandbox: { baseUrl: bank, standardVersion: '1.3.11', tls, contract },
        production: { baseUrl: `${bank}/psd2`, standardVersion: otherVersion, tls, contract },
      },
      state,
      upstream: { maxSockets: 256 },
      shaping: { ...unbound, maxConcurrent: 256, queue: 100_000 },
    }),
  );
  return runOnNode('../src/main.ts', ['serve', '--config', file], nodeOptions);
}
