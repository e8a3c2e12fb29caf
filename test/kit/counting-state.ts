/** A way to a state that notes which operations are under way at the same time: together they are one round trip. */

import type { State } from '../../src/state/ports.ts';

export interface CountingState extends State {
  /**
   * The round trips so far, each the operations that had been asked before one of them was answered, such as
   * `replace ledger:entry`: the first two words of a key are enough. On Redis each operation is one command.
   */
  readonly roundTrips: readonly (readonly string[])[];
  /** Begins to count anew: what is under way then belongs to the old count. */
  reset(): void;
  /** Operations of these names are done from now on, but never come back. */
  dropResponses(...operations: readonly string[]): void;
}

/** @param isCounted which operations, told as in `trips` */
export function createCountingState(shared: State, isCounted: (operation: string) => boolean): CountingState {
  const { keyValues, sets, pubsub } = shared;
  const newCount = () => ({ trips: [] as string[][], underWay: 0 });
  let current = newCount();
  let silent: readonly string[] = [];

  async function counted<Value>(name: string, key: string, act: () => Promise<Value>): Promise<Value> {
    const operation = `${name} ${key.split(':').slice(0, 2).join(':')}`;
    if (!isCounted(operation)) return act();
    const count = current;
    if (count.underWay++ === 0) count.trips.push([]);
    count.trips.at(-1)?.push(operation);
    const done = act().finally(() => {
      count.underWay -= 1;
    });
    if (!silent.includes(name)) return done;
    await done;
    return new Promise(() => {});
  }

  return {
    ...shared,
    keyValues: {
      read: (key) => counted('read', key, () => keyValues.read(key)),
      write: (key, ...rest) => counted('write', key, () => keyValues.write(key, ...rest)),
      writeIfAbsent: (key, ...rest) =>
        counted('writeIfAbsent', key, () => keyValues.writeIfAbsent(key, ...rest)),
      replace: (key, ...rest) => counted('replace', key, () => keyValues.replace(key, ...rest)),
      remove: (key) => counted('remove', key, () => keyValues.remove(key)),
    },
    sets: {
      add: (key, member) => counted('add', key, () => sets.add(key, member)),
      remove: (key, member) => counted('remove', key, () => sets.remove(key, member)),
      members: (key) => counted('members', key, () => sets.members(key)),
    },
    pubsub: {
      ...pubsub,
      publish: (channel, message) => counted('publish', channel, () => pubsub.publish(channel, message)),
    },
    get roundTrips() {
      return current.trips;
    },
    reset() {
      current = newCount();
    },
    dropResponses(...operations) {
      silent = operations;
    },
  };
}
