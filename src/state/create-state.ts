/** Where the state is kept, by the settings. */

import type { StateSettings } from '../config/schema.ts';
import { encryptKeyValues, readEncryptionKeys } from './encryption.ts';
import { createMemoryState } from './memory.ts';
import type { KeyValues, State } from './ports.ts';
import { createRedisState } from './redis.ts';
import { createSqliteState } from './sqlite.ts';

/** @param onChange told once whenever trouble with the state begins, ends, or becomes another; all is well at first */
export function createState(
  { redis, file, prefix }: StateSettings,
  onChange: (trouble: string | undefined) => void,
): State {
  if (redis !== null) return createRedisState(redis, prefix, onChange);
  return file === null ? createMemoryState() : createSqliteState(file, onChange);
}

/** What a restart loses with these settings, in a sentence, if anything. */
export function lostOnRestart({ redis, file }: StateSettings): string | undefined {
  if (redis !== null || file !== null) return undefined;
  return 'the state is kept in memory: a restart forgets which X-Request-IDs were used and what is in doubt, where payments live, which environment is active, and the audit log';
}

/**
 * Where to keep what the bank and the payer have said: encrypted, if there is a key for it.
 *
 * @throws Error with a sentence that says what to change, if the file with the keys cannot be used
 */
export function withEncryption({ keyValues }: State, { encryptionKeyFile }: StateSettings): KeyValues {
  return encryptionKeyFile === null
    ? keyValues
    : encryptKeyValues(keyValues, readEncryptionKeys(encryptionKeyFile));
}
