/** A state whose operations fail when a test says so, and which records them. */

import { GatewayError } from '../../src/request/errors.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { KeyValues, State } from '../../src/state/ports.ts';

type Operation = keyof KeyValues | 'publish';

export interface FailingState extends State {
  /** All operations so far, including those that failed, such as `write environment:beat`. */
  readonly operations: readonly string[];
  /** Lets these operations fail from now on; all of them if none is named. */
  fail(...operations: readonly Operation[]): void;
  recover(): void;
}

const allOperations: readonly Operation[] = [
  ...(['read', 'write', 'writeIfAbsent', 'replace', 'remove', 'removeIf'] as const),
  'publish',
];

/**
 * The state of one instance; available at first.
 *
 * @param shared the store; several instances can share it and fail independently
 */
export function createFailingState(shared: State = createMemoryState()): FailingState {
  const { keyValues, pubsub } = shared;
  const operations: string[] = [];
  let failing: readonly Operation[] = [];

  const enter = (operation: Operation, key: string) => {
    operations.push(`${operation} ${key}`);
    if (failing.includes(operation))
      throw new GatewayError('STATE_UNAVAILABLE', 'The shared state is unavailable.');
  };

  return {
    ...shared,
    keyValues: {
      async read(key) {
        enter('read', key);
        return keyValues.read(key);
      },
      async write(key, value, ttlMs) {
        enter('write', key);
        return keyValues.write(key, value, ttlMs);
      },
      async writeIfAbsent(key, ...rest) {
        enter('writeIfAbsent', key);
        return keyValues.writeIfAbsent(key, ...rest);
      },
      async replace(key, ...rest) {
        enter('replace', key);
        return keyValues.replace(key, ...rest);
      },
      async remove(key) {
        enter('remove', key);
        return keyValues.remove(key);
      },
      async removeIf(key, expected) {
        enter('removeIf', key);
        return keyValues.removeIf(key, expected);
      },
    },
    pubsub: {
      ...pubsub,
      async publish(channel, message) {
        enter('publish', channel);
        return pubsub.publish(channel, message);
      },
    },
    get operations() {
      return [...operations];
    },
    fail(...named) {
      failing = named.length > 0 ? named : allOperations;
    },
    recover() {
      failing = [];
    },
  };
}
