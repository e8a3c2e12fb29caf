/** A state that counts round trips: operations that are in progress at the same time are one round trip. */

import type { State } from '../../src/state/ports.ts';

export interface CountingState extends State {
  /**
   * The round trips so far: for each, the operations that started before the first of them was answered, such as
   * `replace ledger:entry` (the first two parts of the key). On Redis, each operation is one command.
   */
  readonly roundTrips: readonly (readonly string[])[];
  /** Starts a new count; operations in progress belong to the old one. */
  reset(): void;
  /** Operations with these names take effect from now on, but never return. */
  dropResponses(...names: readonly string[]): void;
}

/** @param isCounted selects operations, written as in `roundTrips` */
export function createCountingState(shared: State, isCounted: (operation: string) => boolean): CountingState {
  const { keyValues, tokenBuckets, pubsub } = shared;
  const newCount = () => ({ roundTrips: [] as string[][], inProgress: 0 });
  let current = newCount();
  let dropped: readonly string[] = [];

  async function count<Value>(name: string, key: string, execute: () => Promise<Value>): Promise<Value> {
    const operation = `${name} ${key.split(':').slice(0, 2).join(':')}`;
    if (!isCounted(operation)) return execute();
    const counted = current;
    if (counted.inProgress++ === 0) counted.roundTrips.push([]);
    counted.roundTrips.at(-1)?.push(operation);
    const result = execute().finally(() => {
      counted.inProgress -= 1;
    });
    if (!dropped.includes(name)) return result;
    await result;
    return new Promise(() => {});
  }

  return {
    ...shared,
    keyValues: {
      read: (key) => count('read', key, () => keyValues.read(key)),
      write: (key, ...rest) => count('write', key, () => keyValues.write(key, ...rest)),
      writeIfAbsent: (key, ...rest) =>
        count('writeIfAbsent', key, () => keyValues.writeIfAbsent(key, ...rest)),
      replace: (key, ...rest) => count('replace', key, () => keyValues.replace(key, ...rest)),
      remove: (key) => count('remove', key, () => keyValues.remove(key)),
      removeIf: (key, expected) => count('removeIf', key, () => keyValues.removeIf(key, expected)),
    },
    tokenBuckets: tokenBuckets.isShared
      ? {
          isShared: true,
          reserve: (bucket, ...rest) => count('reserve', bucket, () => tokenBuckets.reserve(bucket, ...rest)),
          take: (bucket, ...rest) => count('take', bucket, () => tokenBuckets.take(bucket, ...rest)),
          lease: (bucket, ...rest) => count('lease', bucket, () => tokenBuckets.lease(bucket, ...rest)),
          giveBack: (bucket, ...rest) =>
            count('giveBack', bucket, () => tokenBuckets.giveBack(bucket, ...rest)),
        }
      : tokenBuckets,
    pubsub: {
      ...pubsub,
      publish: (channel, message) => count('publish', channel, () => pubsub.publish(channel, message)),
    },
    get roundTrips() {
      return current.roundTrips;
    },
    reset() {
      current = newCount();
    },
    dropResponses(...names) {
      dropped = names;
    },
  };
}
