/**
 * The instances that a round waits for. The shared state stores them, so that the wait continues after a restart of the instances
 * that wait. A list is valid only under the epochs for which it was written: the epochs change when all instances have
 * registered, or when an operator has accepted the loss.
 */

import type { KeyValues } from '../state/ports.ts';
import type { StoredEpochs } from './epochs.ts';
import { roundOf } from './registration.ts';

/** Every operation throws GatewayError STATE_UNAVAILABLE. */
export interface AwaitedInstances {
  /** The instances that another one waited for under these epochs. */
  read(stored: StoredEpochs): Promise<readonly string[]>;
  write(stored: StoredEpochs, instances: readonly string[]): Promise<void>;
  /** To be called when all have registered. */
  remove(stored: StoredEpochs): Promise<void>;
}

/** @param windowMs how long a write matters, in milliseconds */
export function createAwaitedInstances(
  keyValues: Pick<KeyValues, 'read' | 'write' | 'remove'>,
  windowMs: () => number,
): AwaitedInstances {
  const keyOf = (stored: StoredEpochs) => `ledger:awaited:${roundOf('', stored)}`;
  return {
    read: async (stored) => (await keyValues.read(keyOf(stored)))?.split(' ') ?? [],
    write: (stored, instances) => keyValues.write(keyOf(stored), instances.join(' '), windowMs()),
    remove: (stored) => keyValues.remove(keyOf(stored)),
  };
}
