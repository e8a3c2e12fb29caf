/** The configuration of a command, or the exit code for an invalid one. */

import type { LoadedConfig, LoadedValidConfig } from '../config/load.ts';
import { CommandError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';

/**
 * @param more lines behind the errors
 * @throws CommandError with all errors, one line each
 */
export function validConfig(loaded: LoadedConfig, more: readonly string[] = []): LoadedValidConfig {
  if (loaded.kind === 'valid') return loaded;
  const { errors } = loaded;
  const count = errors.length === 1 ? '1 error' : `${errors.length} errors`;
  const text = [`${count} in the configuration:`, ...errors, ...more].join('\n');
  throw new CommandError(exitCodes.config, text, { data: { errors } });
}
