/** Proves every second that the shared state accepts writes, and reads what other instances may have changed. */

import type { ActiveEnvironment } from './environments/active-environment.ts';
import { createPeriodicTask, heartbeatMs, type PeriodicTask } from './periodic-task.ts';
import type { State } from './state/ports.ts';
import type { Holds } from './upstream/circuit/holds.ts';

/** Runs every second, and every 250 ms while the state accepts no writes. */
export interface StateHeartbeat extends PeriodicTask {
  /** What is wrong with the shared state, as a sentence; `undefined` if nothing is. */
  problem(): string | undefined;
  /** Milliseconds until shared data should be read again: short while there is a problem, to notice its end. */
  nextIntervalMs(): number;
}

interface StateHeartbeatDependencies {
  readonly state: State;
  readonly activeEnvironment: Pick<ActiveEnvironment, 'read'>;
  readonly holds: Pick<Holds, 'refresh'>;
}

/** Interval after a failure. Milliseconds. */
const retryIntervalMs = 250;
/** Time to live of the key that each heartbeat writes. Milliseconds. */
const heartbeatTtlMs = 60_000;

/** A single failure may be a coincidence: two in a row are a problem. */
export function createStateHeartbeat({
  state,
  activeEnvironment,
  holds,
}: StateHeartbeatDependencies): StateHeartbeat {
  let failures = 0;
  const nextIntervalMs = () => (failures === 0 ? heartbeatMs : retryIntervalMs);
  const task = createPeriodicTask(async () => {
    const writeAndRead = state.keyValues
      .write('environment:beat', '', heartbeatTtlMs)
      .then(() => activeEnvironment.read());
    const [outcome] = await Promise.allSettled([writeAndRead, holds.refresh()]);
    failures = outcome.status === 'fulfilled' ? 0 : failures + 1;
    return nextIntervalMs();
  });
  return {
    ...task,
    nextIntervalMs,
    problem: () => state.problem() ?? (failures > 1 ? 'writes to the shared state fail' : undefined),
  };
}
