/** The lifetime of what tests start: one test, or all tests of a file. */

import { after } from 'node:test';

/** A scope with hooks at its end; the context of every test is one. */
export interface TestScope {
  /** Runs a function at the end. */
  after(end: () => unknown): void;
}

/** A scope that ends after all tests of the file or `describe` that calls this; hooks run in reverse order. */
export function scopeOfAllTests(): TestScope {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return { after: (end) => void ends.push(end) };
}
