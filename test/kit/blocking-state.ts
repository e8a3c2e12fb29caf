/** One instance's way to a state on which an operation can be held up, as on a slow connection: it is done, and not told yet. */

import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';

export interface BlockingState extends State {
  /** The next operation of this kind is done at once, but comes back only when the returned function is called. */
  block(operation: BlockableOperation): () => void;
}

type BlockableOperation = 'read' | 'replace' | 'remove' | 'writeIfAbsent';

/** @param shared the state behind it */
export function createBlockingState(shared: State = createMemoryState()): BlockingState {
  const { keyValues } = shared;
  const gates = new Map<BlockableOperation, Promise<void>>();

  async function through<Value>(operation: BlockableOperation, done: Promise<Value>): Promise<Value> {
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
    block(operation) {
      const { promise, resolve } = Promise.withResolvers<void>();
      gates.set(operation, promise);
      return resolve;
    },
  };
}
