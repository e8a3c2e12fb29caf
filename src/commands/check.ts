/** `penstock check`: validates the configuration, and reports whether its database and its Redis can be used. */

import { describeDerived } from '../config/derive-defaults.ts';
import { configSource, loadConfigAndFiles, strictly } from '../config/load.ts';
import type { StateSettings } from '../config/schema.ts';
import { createState } from '../state/create-state.ts';
import { DatabaseError } from '../store/database.ts';
import { checkGatewayDatabase, UnusableDatabaseError } from '../store/gateway-database.ts';
import type { Options } from './command.ts';
import { CommandError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';
import { validConfig } from './valid-config.ts';

/** @throws CommandError if the gateway would not start with this configuration, or if `strict` and there are warnings */
export async function check(options: Pick<Options, 'config' | 'strict' | 'connect'>): Promise<CommandOutput> {
  const asGiven = loadConfigAndFiles(configSource(options.config));
  const loaded = options.strict ? strictly(asGiven) : asGiven;
  const { config, derived, warnings } = validConfig(loaded, loaded.warnings.map(describeWarning));
  const database = options.connect ? await checkDatabase(config.state) : [];
  const state = options.connect ? await checkState(config.state) : [];
  const lines = [
    'The configuration is valid.',
    ...derived.map(describeDerived),
    ...warnings.map(describeWarning),
    ...database,
    ...state,
  ];
  return success(lines, { valid: true, derived, warnings, database, state });
}

const describeWarning = (warning: string) => `warning: ${warning}`;

/** Connects to PostgreSQL, and changes nothing in it. @throws CommandError if it cannot be reached, or the gateway could not start with it */
async function checkDatabase(settings: StateSettings): Promise<readonly string[]> {
  try {
    return (await checkGatewayDatabase(settings)).map(describeWarning);
  } catch (cause) {
    if (cause instanceof DatabaseError)
      throw new CommandError(exitCodes.unavailable, `The database was not checked: ${cause.reason}`, {
        cause,
      });
    if (cause instanceof UnusableDatabaseError)
      throw new CommandError(exitCodes.config, `The gateway cannot start: ${cause.message}`, { cause });
    throw cause;
  }
}

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
