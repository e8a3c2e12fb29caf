/** What a state says while its Redis is out of reach, and how soon it is well again. */

import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import type { RedisSettings } from '../../src/config/schema.ts';
import { GatewayError } from '../../src/request/errors.ts';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import type { Life } from './life.ts';
import { until } from './within.ts';

/** A state on Redis, and every change of its trouble so far. */
export interface WatchedState extends State {
  readonly problems: readonly (string | undefined)[];
}

/** Not open yet; closed at the end. */
export function createWatchedState(life: Life, settings: RedisSettings): WatchedState {
  const changes: (string | undefined)[] = [];
  const state = createRedisState(settings, 'test:', (trouble) => changes.push(trouble));
  life.after(() => state.close());
  return { ...state, problems: changes };
}

/** An open state that is well. */
export async function openRedisState(life: Life, settings: RedisSettings): Promise<WatchedState> {
  const state = createWatchedState(life, settings);
  await state.open();
  await until(5_000, 'Redis is within reach', () => state.problem() === undefined);
  return state;
}

/** Milliseconds that an operation took to fail; STATE_UNAVAILABLE is the only way. */
export async function timeToFail(operation: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await assert.rejects(
    operation(),
    (error) => error instanceof GatewayError && error.code === 'STATE_UNAVAILABLE',
  );
  return performance.now() - start;
}

/** How long the operations took that were tried one after the other for a time, each of which failed; the slowest last. */
export async function timesToFail(ms: number, operation: () => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  const deadline = performance.now() + ms;
  while (performance.now() < deadline) {
    times.push(await timeToFail(operation));
    await setImmediate();
  }
  return times.toSorted((one, other) => one - other);
}

/** Milliseconds until an operation succeeds, at most `ms`. */
export async function timeToRecover(ms: number, operation: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await until(ms, 'it works again', () =>
    operation().then(
      () => true,
      () => false,
    ),
  );
  return performance.now() - start;
}
