/** A place in a Redis for each test of the contract: names of its own on a server that they share. */

import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import type { RedisSettings } from '../../src/config/schema.ts';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { until } from '../kit/within.ts';
import type { RawTestStore } from './invalid-utf8-contract.ts';

/** Not what an outage takes, but what a busy machine may. */
const answerMs = 500;

/** An empty place in a Redis. */
export function createRedisTestStore(
  t: TestContext,
  settings: Exclude<RedisSettings, { kind: 'sentinels' }>,
): RawTestStore {
  const opened = async (prefix: string): Promise<State> => {
    const state = createRedisState(settings, prefix, () => {}, answerMs);
    t.after(() => state.close());
    await state.open();
    await until(5_000, 'it is within reach', () => state.problem() === undefined);
    return state;
  };
  const prefix = `penstock-test:${randomUUID()}:`;
  if (settings.kind === 'single') t.after(() => removeAll(settings.url, prefix));
  return {
    client: () => opened(`${prefix}ours:`),
    async writeBytes(key, bytes) {
      const client = settings.kind === 'cluster' ? new Cluster([...settings.urls]) : new Redis(settings.url);
      await client.set(`${prefix}ours:${key}`, bytes).finally(() => client.disconnect());
    },
    otherClient: () => opened(`${prefix}theirs:`),
    now: () => performance.now(),
    until,
  };
}

/** The server may be somebody's: nothing is left on it. */
async function removeAll(url: string, prefix: string): Promise<void> {
  const client = new Redis(url);
  for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    if (keys.length > 0) await client.del(...keys);
  }
  client.disconnect();
}
