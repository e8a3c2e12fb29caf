/** One instance's way to a state on which an operation can be held up, as on a slow connection: it is done, and not told yet. */

import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';

export interface HeldState extends State {
  /** The next operation of this kind is done at once, but comes back only when the returned function is called. */
  hold(operation: Held): () => void;
}

type Held = 'read' | 'replace' | 'remove' | 'writeIfAbsent';

/** @param shared the state behind it */
export function createHeldState(shared: State = createMemoryState()): HeldState {
  const { keyValues } = shared;
  const gates = new Map<Held, Promise<void>>();

  async function through<Value>(operation: Held, done: Promise<Value>): Promise<Value> {
    const gate = gates.get(operation);
    gates.delete(operation);
    await gate;
    return done;
  }

  return {
    ...shared,
    keyValues: {
      write: keyValues.write,
      read: (key) => through('read', keyValues.read(key)),
      replace: (...all) => through('replace', keyValues.replace(...all)),
      remove: (key) => through('remove', keyValues.remove(key)),
      writeIfAbsent: (...all) => through('writeIfAbsent', keyValues.writeIfAbsent(...all)),
    },
    hold(operation) {
      const { promise, resolve } = Promise.withResolvers<void>();
      gates.set(operation, promise);
      return resolve;
    },
  };
}
