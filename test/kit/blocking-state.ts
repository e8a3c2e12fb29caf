/** A state on which a test can delay the result of an operation, as a slow connection does. */

import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';

export interface BlockingState extends State {
  /** The next operation of this kind takes effect at once, but returns only after `unblock` was called. @returns `unblock` */
  block(operation: BlockableOperation): () => void;
}

type BlockableOperation = 'read' | 'replace' | 'remove' | 'removeIf' | 'writeIfAbsent';

/** @param shared the store */
export function createBlockingState(shared: State = createMemoryState()): BlockingState {
  const { keyValues } = shared;
  const blocked = new Map<BlockableOperation, Promise<void>>();

  async function delay<Result>(operation: BlockableOperation, result: Promise<Result>): Promise<Result> {
    const unblocked = blocked.get(operation);
    blocked.delete(operation);
    await unblocked;
    return result;
  }

  return {
    ...shared,
    keyValues: {
      write: keyValues.write,
      read: (key) => delay('read', keyValues.read(key)),
      replace: (...args) => delay('replace', keyValues.replace(...args)),
      remove: (key) => delay('remove', keyValues.remove(key)),
      removeIf: (...args) => delay('removeIf', keyValues.removeIf(...args)),
      writeIfAbsent: (...args) => delay('writeIfAbsent', keyValues.writeIfAbsent(...args)),
    },
    block(operation) {
      const { promise, resolve } = Promise.withResolvers<void>();
      blocked.set(operation, promise);
      return resolve;
    },
  };
}
