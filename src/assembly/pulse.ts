/** The pulse of an instance: proves every second that the shared state takes changes, and looks at what is shared. */

import type { ActiveEnvironment } from '../environments/active-environment.ts';
import type { Holders } from '../idempotency/holders.ts';
import type { State } from '../state/ports.ts';
import type { Holds } from '../upstream/circuit/holds.ts';
import { createHeart, type Heart, heartbeatMs } from './heart.ts';

/** Beats every second, and four times as often while the state takes no changes. */
export interface Pulse extends Heart {
  /** What is wrong with the shared state, if anything. */
  trouble(): string | undefined;
  /** When to look at shared things again, in milliseconds: trouble that is over must not last until the next beat. */
  nextMs(): number;
}

interface Shared {
  readonly state: State;
  readonly active: Pick<ActiveEnvironment, 'read'>;
  readonly holders: Pick<Holders, 'renew'>;
  readonly holds: Pick<Holds, 'refresh'>;
}

/** How soon it is tried again when it failed. Milliseconds. */
const retriedMs = 250;
/** How long the proof is kept that the state could be written. Milliseconds. */
const keptMs = 60_000;

/** One beat that fails may be chance: from the second on it is trouble. */
export function createPulse({ state, active, holders, holds }: Shared): Pulse {
  let failed = 0;
  const nextMs = () => (failed === 0 ? heartbeatMs : retriedMs);
  const heart = createHeart(async () => {
    const shared = state.keyValues.write('environment:beat', '', keptMs).then(() => active.read());
    const [outcome] = await Promise.allSettled([shared, holders.renew(), holds.refresh()]);
    failed = outcome.status === 'fulfilled' ? 0 : failed + 1;
    return nextMs();
  });
  return {
    ...heart,
    nextMs,
    trouble: () => state.trouble() ?? (failed > 1 ? 'the shared state takes no changes' : undefined),
  };
}
