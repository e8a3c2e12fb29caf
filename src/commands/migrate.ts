/** `penstock migrate`: creates the tables of the gateway in its database, or brings them to the version of this build. */

import { UnusableConfigError } from '../config/config-errors.ts';
import { configSource, loadConfigAndFiles } from '../config/load.ts';
import { DatabaseError } from '../store/database.ts';
import { migrateDatabase } from '../store/gateway-database.ts';
import type { Options } from './command.ts';
import { CommandError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';
import { validConfig } from './valid-config.ts';

/** @throws CommandError if the configuration is invalid, or its database cannot be reached or changed */
export async function migrate(options: Pick<Options, 'config'>): Promise<CommandOutput> {
  const { config } = validConfig(loadConfigAndFiles(configSource(options.config)));
  const { postgres, file } = config.state;
  if (postgres === null && file === null)
    return success(['Nothing to migrate: the database is in memory. Set state.postgres or state.file.'], {});
  try {
    const { from, to } = await migrateDatabase(config.state);
    return success([described(from, to)], { from, to });
  } catch (cause) {
    if (cause instanceof UnusableConfigError)
      throw new CommandError(exitCodes.config, cause.message, { cause });
    if (!(cause instanceof DatabaseError)) throw cause;
    const exitCode = cause.effect === 'none-ever' ? exitCodes.config : exitCodes.unavailable;
    throw new CommandError(exitCode, `The database was not changed to this version: ${cause.reason}`, {
      cause,
    });
  }
}

function described(from: number, to: number): string {
  if (from === to) return `The database has schema version ${to} already.`;
  if (from === 0) return `The tables were created, with schema version ${to}.`;
  return `The schema was changed from version ${from} to ${to}.`;
}
