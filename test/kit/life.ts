/** How long something started for tests lasts: as long as one test, or all of a file. */

import { after } from 'node:test';

/** What knows its end; every test's context does. */
export interface Life {
  /** Has this done at the end. */
  after(end: () => unknown): void;
}

/** The life of all tests of the file, or of the `describe`, that calls this; what came last ends first. */
export function lifeOfAllTests(): Life {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return { after: (end) => void ends.push(end) };
}
