/** Proves every second that the shared state accepts writes. */

import { createPeriodicTask, heartbeatMs, type PeriodicTask } from './periodic-task.ts';
import type { State } from './state/ports.ts';

/** Runs every second, and every 250 ms while the state accepts no writes. */
export interface StateHeartbeat extends PeriodicTask {
  /** What is wrong with the shared state, as a sentence; `undefined` if nothing is. */
  problem(): string | undefined;
  /** Milliseconds until shared data should be read again: short while there is a problem, to notice its end. */
  nextIntervalMs(): number;
}

/** Interval after a failure. Milliseconds. */
const retryIntervalMs = 250;
/** Time to live of the key that each heartbeat writes. Milliseconds. */
const heartbeatTtlMs = 60_000;

/** A single failure may be a coincidence: two in a row are a problem. */
export function createStateHeartbeat(state: Pick<State, 'keyValues' | 'problem'>): StateHeartbeat {
  let failures = 0;
  const nextIntervalMs = () => (failures === 0 ? heartbeatMs : retryIntervalMs);
  const task = createPeriodicTask(async () => {
    failures = await state.keyValues.write('environment:beat', '', heartbeatTtlMs).then(
      () => 0,
      () => failures + 1,
    );
    return nextIntervalMs();
  });
  return {
    ...task,
    nextIntervalMs,
    problem: () => state.problem() ?? (failures > 1 ? 'writes to the shared state fail' : undefined),
  };
}
