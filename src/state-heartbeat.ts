/** The pulse of an instance: proves every second that the shared state takes changes, and looks at what is shared. */

import type { ActiveEnvironment } from './environments/active-environment.ts';
import type { InstanceLeases } from './idempotency/recovery.ts';
import { createPeriodicTask, heartbeatMs, type PeriodicTask } from './periodic-task.ts';
import type { State } from './state/ports.ts';
import type { Holds } from './upstream/circuit/holds.ts';

/** Beats every second, and four times as often while the state takes no changes. */
export interface StateHeartbeat extends PeriodicTask {
  /** What is wrong with the shared state, if anything. */
  problem(): string | undefined;
  /** When to look at shared things again, in milliseconds: trouble that is over must not last until the next beat. */
  nextIntervalMs(): number;
}

interface StateHeartbeatDependencies {
  readonly state: State;
  readonly active: Pick<ActiveEnvironment, 'read'>;
  readonly holders: Pick<InstanceLeases, 'renew'>;
  readonly holds: Pick<Holds, 'refresh'>;
}

/** How soon it is tried again when it failed. Milliseconds. */
const retryIntervalMs = 250;
/** How long the proof is kept that the state could be written. Milliseconds. */
const proofTtlMs = 60_000;

/** One beat that fails may be chance: from the second on it is trouble. */
export function createStateHeartbeat({
  state,
  active,
  holders,
  holds,
}: StateHeartbeatDependencies): StateHeartbeat {
  let failures = 0;
  const nextMs = () => (failures === 0 ? heartbeatMs : retryIntervalMs);
  const task = createPeriodicTask(async () => {
    const shared = state.keyValues.write('environment:beat', '', proofTtlMs).then(() => active.read());
    const [outcome] = await Promise.allSettled([shared, holders.renew(), holds.refresh()]);
    failures = outcome.status === 'fulfilled' ? 0 : failures + 1;
    return nextMs();
  });
  return {
    ...task,
    nextIntervalMs: nextMs,
    problem: () => state.problem() ?? (failures > 1 ? 'the shared state takes no changes' : undefined),
  };
}
