/** Creates the state that the settings select: Redis, or memory. */

import { readFromDisk } from '../certificates/file-watcher.ts';
import { loadCredentials } from '../certificates/tls-credentials.ts';
import type { EncryptionKeys } from '../config/encryption-keys.ts';
import type { StateSettings } from '../config/schema.ts';
import { encryptKeyValues, readEncryptionKeys } from './encryption.ts';
import { createMemoryState } from './memory.ts';
import type { KeyValues, State } from './ports.ts';
import { createRedisState } from './redis.ts';

/** @param onChange called when a problem with the state begins, ends or becomes another one */
export function createState(
  { redis, redisTls, prefix, timeout }: StateSettings,
  onChange: (problem: string | undefined) => void,
): State {
  if (redis === null) return createMemoryState();
  const tls = redisTls ? loadCredentials(redisTls, readFromDisk).credentials : {};
  return createRedisState({ ...redis, tls }, prefix, onChange, timeout);
}

/** Whether a restart loses the database. */
export const isDatabaseInMemory = ({ postgres, file }: StateSettings): boolean =>
  postgres === null && file === null;

/** What a restart loses with these settings, as a sentence; `undefined` if nothing is lost. */
export function lostOnRestart(settings: StateSettings): string | undefined {
  if (!isDatabaseInMemory(settings)) return undefined;
  return 'the database is in memory: a restart loses the used X-Request-IDs, the payments in doubt, the environment of each payment, the active environment and the audit log; set state.file or state.postgres';
}

/** What of the state holds data of banks, payers and requests: encrypted, if a key file is configured. */
export interface EncryptedState {
  readonly keyValues: KeyValues;
  readonly keys?: EncryptionKeys;
}

/** @throws Error that says what to change, if the key file cannot be used */
export function withEncryption(
  { keyValues }: Pick<State, 'keyValues'>,
  { encryptionKeyFile }: StateSettings,
): EncryptedState {
  if (encryptionKeyFile === null) return { keyValues };
  const keys = readEncryptionKeys(encryptionKeyFile);
  return {
    keys,
    keyValues: encryptKeyValues(keyValues, keys),
  };
}
