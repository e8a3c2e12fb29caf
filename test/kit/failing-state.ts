/** A state whose operations fail while a test says so, and which tells what it was asked. */

import { GatewayError } from '../../src/request/errors.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { KeyValues, Sets, State } from '../../src/state/ports.ts';

type Operation = keyof KeyValues | keyof Sets | 'publish';

export interface FailingState extends State {
  /** What it was asked so far, failed operations included: such as `read environment:active`. */
  readonly operations: readonly string[];
  /** These operations fail from now on; every one if none is named. */
  fail(...operations: readonly Operation[]): void;
  recover(): void;
}

const allOperations: readonly Operation[] = [
  ...(['read', 'write', 'writeIfAbsent', 'replace', 'remove'] as const),
  ...(['add', 'members', 'publish'] as const),
];

/**
 * One instance's way to a state, which is well at first.
 *
 * @param shared the state behind it; two instances on one state have a way each, and fail each for itself
 */
export function createFailingState(shared: State = createMemoryState()): FailingState {
  const { keyValues, sets, pubsub } = shared;
  let asked: readonly string[] = [];
  let failing: readonly Operation[] = [];

  const enter = (operation: Operation, key: string) => {
    asked = [...asked, `${operation} ${key}`];
    if (failing.includes(operation))
      throw new GatewayError('STATE_UNAVAILABLE', 'The shared state cannot be reached.');
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
      async writeIfAbsent(key, value, ttlMs) {
        enter('writeIfAbsent', key);
        return keyValues.writeIfAbsent(key, value, ttlMs);
      },
      async replace(key, expected, value, ttlMs) {
        enter('replace', key);
        return keyValues.replace(key, expected, value, ttlMs);
      },
      async remove(key) {
        enter('remove', key);
        return keyValues.remove(key);
      },
    },
    sets: {
      async add(key, member) {
        enter('add', key);
        return sets.add(key, member);
      },
      async remove(key, member) {
        enter('remove', key);
        return sets.remove(key, member);
      },
      async members(key) {
        enter('members', key);
        return sets.members(key);
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
      return asked;
    },
    fail(...operations) {
      failing = operations.length > 0 ? operations : allOperations;
    },
    recover() {
      failing = [];
    },
  };
}
