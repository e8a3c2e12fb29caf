/** Redis states whose problems are recorded, and assertions about outages of Redis. */

import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import type { RedisSettings } from '../../src/config/schema.ts';
import { GatewayError } from '../../src/request/errors.ts';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import type { TestScope } from './test-scope.ts';
import { until, within } from './within.ts';

/** A state on Redis, and every change of its problem so far. */
export interface WatchedState extends State {
  readonly problems: readonly (string | undefined)[];
}

/** Not open yet. @param timeoutMs of a command; the default tolerates a busy machine, production uses 250 */
export function createWatchedState(life: TestScope, settings: RedisSettings, timeoutMs = 500): WatchedState {
  const problems: (string | undefined)[] = [];
  const state = createRedisState(settings, 'test:', (problem) => problems.push(problem), timeoutMs);
  life.after(() => state.close());
  return { ...state, problems };
}

/** An open state without a problem. */
export async function openRedisState(
  life: TestScope,
  settings: RedisSettings,
  timeoutMs?: number,
): Promise<WatchedState> {
  const state = createWatchedState(life, settings, timeoutMs);
  await state.open();
  await until(5_000, 'Redis is reachable', () => state.problem() === undefined);
  return state;
}

/** Asserts that an operation is refused with STATE_UNAVAILABLE instead of waiting for Redis. */
export async function assertUnavailable(operation: () => Promise<unknown>): Promise<void> {
  await within(
    2_000,
    'the operation fails',
    assert.rejects(
      operation(),
      (error) => error instanceof GatewayError && error.code === 'STATE_UNAVAILABLE',
    ),
  );
}

/** Repeats an operation for a time, and asserts that it is refused each time. */
export async function assertUnavailableFor(ms: number, operation: () => Promise<unknown>): Promise<void> {
  const deadlineMs = performance.now() + ms;
  while (performance.now() < deadlineMs) {
    await assertUnavailable(operation);
    await setImmediate();
  }
}

/** Repeats an operation until it succeeds, for at most `ms`. */
export async function untilAvailable(ms: number, operation: () => Promise<unknown>): Promise<void> {
  await until(ms, 'the operation succeeds again', () =>
    operation().then(
      () => true,
      () => false,
    ),
  );
}
