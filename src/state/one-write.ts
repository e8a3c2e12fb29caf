/** Lets what is given to connections in one breath leave them in one piece: each write costs a call of the system. */

import type { Writable } from 'node:stream';

/**
 * What it returns is called before something is written: nothing leaves until the promises that are due have run.
 *
 * @param connections those that may be written to; asked once a breath
 */
export function inOneWrite(connections: () => readonly Writable[]): () => void {
  let isHeld = false;
  return () => {
    if (isHeld) return;
    isHeld = true;
    const held = connections();
    for (const connection of held) connection.cork();
    process.nextTick(() => {
      isHeld = false;
      for (const connection of held) connection.uncork();
    });
  };
}
