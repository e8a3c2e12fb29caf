/** The way of one instance to the state they share: every operation takes its time, and some fail. */

import { stateUnavailable } from '../../../../src/request/errors.ts';
import type { State } from '../../../../src/state/ports.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/**
 * How an operation fails: nothing is carried out; it is carried out, and nobody is told; or it is carried out
 * some time after the instance has given it up.
 */
export type StateFailure = 'refused' | 'done-untold' | 'done-later';

export interface UnreliableState extends State {
  /** The next operations fail in this way. */
  fail(failure: StateFailure, operations: number): void;
  heal(): void;
}

/** @param network carries out what comes later than anybody waits for */
export function createUnreliableState(
  shared: State,
  steps: Scheduler,
  process: SimulatedProcess,
  network: SimulatedProcess,
): UnreliableState {
  let failures: readonly StateFailure[] = [];

  const slowly = <Arguments extends readonly unknown[], Value>(
    act: (...all: Arguments) => Promise<Value>,
  ) => {
    return async (...all: Arguments): Promise<Value> => {
      await steps.pause(process);
      const [failure, ...later] = failures;
      failures = later;
      if (failure === 'done-later') void steps.pause(network).then(() => act(...all));
      if (failure === 'done-later' || failure === 'refused') throw stateUnavailable();
      const value = await act(...all);
      await steps.pause(process);
      if (failure === 'done-untold') throw stateUnavailable();
      return value;
    };
  };

  const { keyValues, sets, pubsub } = shared;
  return {
    ...shared,
    keyValues: {
      read: slowly(keyValues.read),
      write: slowly(keyValues.write),
      writeIfAbsent: slowly(keyValues.writeIfAbsent),
      replace: slowly(keyValues.replace),
      remove: slowly(keyValues.remove),
    },
    sets: { add: slowly(sets.add), remove: slowly(sets.remove), members: slowly(sets.members) },
    pubsub: { ...pubsub, publish: slowly(pubsub.publish) },
    fail(failure, operations) {
      failures = Array.from({ length: operations }, () => failure);
    },
    heal() {
      failures = [];
    },
  };
}
