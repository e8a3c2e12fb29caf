/** `penstock check`: validates the configuration, and reports whether its Redis can be used. */

import { describeDerived } from '../config/derive-defaults.ts';
import { configSource, loadConfigAndFiles, strictly } from '../config/load.ts';
import type { StateSettings } from '../config/schema.ts';
import { createState } from '../state/create-state.ts';
import type { Options } from './command.ts';
import { CommandError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';
import { validConfig } from './valid-config.ts';

/** @throws CommandError if the gateway would not start with this configuration, or if `strict` and there are warnings */
export async function check(options: Pick<Options, 'config' | 'strict'>): Promise<CommandOutput> {
  const asGiven = loadConfigAndFiles(configSource(options.config));
  const loaded = options.strict ? strictly(asGiven) : asGiven;
  const { config, derived, warnings } = validConfig(loaded, loaded.warnings.map(describeWarning));
  const state = await checkState(config.state);
  const lines = [
    'The configuration is valid.',
    ...derived.map(describeDerived),
    ...warnings.map(describeWarning),
    ...state,
  ];
  return success(lines, { valid: true, derived, warnings, state });
}

const describeWarning = (warning: string) => `warning: ${warning}`;

/** Connects to Redis, and changes nothing in it. A Redis that cannot be reached is reported, and is not a failure. */
async function checkState(settings: StateSettings): Promise<readonly string[]> {
  if (settings.redis === null) return [];
  const state = createState(settings, () => {});
  try {
    await state.open();
    const problem = state.problem();
    return problem === undefined ? state.warnings() : [`Not checked: ${problem}`];
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(exitCodes.config, `The gateway cannot start with this Redis: ${why}`, { cause });
  } finally {
    await state.close();
  }
}
