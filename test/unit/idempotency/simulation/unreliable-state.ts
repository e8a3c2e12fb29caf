/** The connection of one instance to the shared state: every operation takes scheduler steps, and some fail. */

import { stateUnavailable } from '../../../../src/request/errors.ts';
import type { State } from '../../../../src/state/ports.ts';
import type { ForgetfulState } from './forgetful-state.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/**
 * How an operation fails: it is not executed; it is executed but its reply is lost; or it is executed some time after
 * the instance got an error.
 */
export type StateFailure = 'not executed' | 'reply lost' | 'executed later';

export interface UnreliableState extends State {
  /** Makes the next operations fail. */
  fail(failure: StateFailure, operations: number): void;
  recover(): void;
}

/**
 * @param store   a restart of it ends the connection: operations that it has not executed fail, and the instance notices the
 *   end some steps later
 * @param network runs the operations that are executed later
 */
export function createUnreliableState(
  shared: State,
  store: Pick<ForgetfulState, 'restarts' | 'onRestart'>,
  scheduler: Scheduler,
  process: SimulatedProcess,
  network: SimulatedProcess,
): UnreliableState {
  let failures: readonly StateFailure[] = [];
  let run = store.restarts();
  const disconnectListeners: (() => void)[] = [];

  store.onRestart(async () => {
    await scheduler.pause(process);
    run = store.restarts();
    for (const listener of disconnectListeners) listener();
  });

  const unreliable = <Arguments extends readonly unknown[], Value>(
    execute: (...all: Arguments) => Promise<Value>,
  ) => {
    return async (...all: Arguments): Promise<Value> => {
      const sentTo = run;
      await scheduler.pause(process);
      if (sentTo !== store.restarts()) throw stateUnavailable();
      const [failure, ...later] = failures;
      failures = later;
      if (failure === 'executed later')
        void scheduler.pause(network).then(() => {
          if (sentTo === store.restarts()) execute(...all).catch(() => {});
        });
      if (failure === 'executed later' || failure === 'not executed') throw stateUnavailable();
      const value = await execute(...all);
      await scheduler.pause(process);
      if (failure === 'reply lost') throw stateUnavailable();
      return value;
    };
  };

  const { keyValues, sets, pubsub } = shared;
  return {
    ...shared,
    keyValues: {
      read: unreliable(keyValues.read),
      write: unreliable(keyValues.write),
      writeIfAbsent: unreliable(keyValues.writeIfAbsent),
      replace: unreliable(keyValues.replace),
      remove: unreliable(keyValues.remove),
      removeIf: unreliable(keyValues.removeIf),
    },
    sets: { add: unreliable(sets.add), remove: unreliable(sets.remove), members: unreliable(sets.members) },
    onDisconnect: (listener) => void disconnectListeners.push(listener),
    pubsub: { ...pubsub, publish: unreliable(pubsub.publish) },
    fail(failure, operations) {
      failures = Array.from({ length: operations }, () => failure);
    },
    recover() {
      failures = [];
    },
  };
}
