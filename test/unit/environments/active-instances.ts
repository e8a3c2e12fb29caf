/** Instances of the gateway that share the active environment. */

import { createActiveEnvironment } from '../../../src/environments/active-environment.ts';
import type { State } from '../../../src/state/ports.ts';
import { createLogLines } from '../../kit/log-lines.ts';

/** Where the state keeps it. */
export const key = 'environment:active';

/** One instance of the gateway on a state that others may share. */
export function instanceOn(state: State, configured = 'sandbox') {
  const { log, lines } = createLogLines();
  return { ...createActiveEnvironment(state, configured, log), lines };
}

/** The next regular look at the state, as the heartbeat takes it. */
export const beat = (instance: ReturnType<typeof instanceOn>) => instance.read();
