/** A Redis of some kind as a place for the contract: one server for a whole file, another prefix for each test. */

import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { RedisSettings } from '../../src/config/schema.ts';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { until } from '../kit/within.ts';
import type { Store } from './kind-of-state.ts';

/** Not what an outage takes, but what a busy machine may. */
const answerMs = 500;

/** An empty place in a Redis. */
export function storeIn(t: TestContext, settings: RedisSettings): Store {
  const opened = async (prefix: string): Promise<State> => {
    const state = createRedisState(settings, prefix, () => {}, answerMs);
    t.after(() => state.close());
    await state.open();
    await until(5_000, 'it is within reach', () => state.trouble() === undefined);
    return state;
  };
  const prefix = `penstock-test:${randomUUID()}:`;
  return {
    client: () => opened(prefix),
    stranger: () => opened(`penstock-test:${randomUUID()}:`),
    now: () => performance.now(),
    until,
  };
}
