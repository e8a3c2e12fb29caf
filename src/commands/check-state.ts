/** `penstock check`: what the configured Redis says about itself, as the gateway would find it at its start. */

import type { StateSettings } from '../config/schema.ts';
import { createState } from '../state/create-state.ts';
import type { CommandOutput } from './command-output.ts';

/** Exit code of sysexits.h for a wrong configuration. */
const exitConfig = 78;

/** Connects to Redis, and changes nothing in it. A Redis that cannot be reached is reported, and is no failure. */
export async function checkState(settings: StateSettings): Promise<CommandOutput> {
  if (settings.redis === null) return { lines: [], exitCode: 0 };
  const state = createState(settings, () => {});
  try {
    await state.open();
    const problem = state.problem();
    const lines = problem === undefined ? state.lossRisks() : [`Not checked: ${problem}`];
    return { lines, exitCode: 0 };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    return { lines: [`The gateway does not start on this Redis. ${why}`], exitCode: exitConfig };
  } finally {
    await state.close();
  }
}
