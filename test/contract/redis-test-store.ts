/** An empty store for each contract test, under a prefix of its own in a shared Redis. */

import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import type { RedisSettings } from '../../src/config/schema.ts';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { until } from '../kit/within.ts';
import type { RawTestStore } from './invalid-utf8-contract.ts';

/** As long as possible, because the machine that runs the tests may be busy. */
const timeoutMs = 2_000;

export function createRedisTestStore(
  t: TestContext,
  settings: Exclude<RedisSettings, { kind: 'sentinels' }>,
): RawTestStore {
  const open = async (prefix: string): Promise<State> => {
    const state = createRedisState(settings, prefix, () => {}, timeoutMs);
    t.after(() => state.close());
    await state.open();
    await until(10_000, 'Redis is reachable', () => state.problem() === undefined);
    return state;
  };
  const prefix = `penstock-test:${randomUUID()}:`;
  if (settings.kind === 'single') t.after(() => removeAll(settings.url, prefix));
  return {
    client: () => open(`${prefix}ours:`),
    async writeBytes(key, bytes) {
      const client = settings.kind === 'cluster' ? new Cluster([...settings.urls]) : new Redis(settings.url);
      await client.set(`${prefix}ours:${key}`, bytes).finally(() => client.disconnect());
    },
    otherClient: () => open(`${prefix}theirs:`),
    now: () => performance.now(),
    until,
  };
}

/** Leaves no keys behind, because the server may be used for other purposes. */
async function removeAll(url: string, prefix: string): Promise<void> {
  const client = new Redis(url);
  for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    if (keys.length > 0) await client.del(...keys);
  }
  client.disconnect();
}
