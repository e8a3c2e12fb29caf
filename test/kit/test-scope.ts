/** The lifetime of what tests start: one test, or all tests of a file. */

import { after } from 'node:test';
import { isMainThread } from 'node:worker_threads';
import { within } from './within.ts';

/** A scope with hooks at its end; the context of every test is one. */
export interface TestScope {
  /** Runs a function at the end. */
  after(end: () => unknown): void;
}

/** Milliseconds. */
const maxEndMs = 60_000;

/** The scopes that have not ended. */
const openScopes = new Set<() => Promise<void>>();

/** A scope that ends after all tests of the file or `describe` that calls this; hooks run in reverse order. */
export function scopeOfAllTests(): TestScope {
  const ends: { readonly end: () => unknown; readonly where: string }[] = [];
  const endScope = async () => {
    openScopes.delete(endScope);
    // The runner would only say that a hook of this file took too long.
    for (const { end, where } of ends.splice(0).toReversed())
      await within(maxEndMs, `the end of what was started${where}`, Promise.resolve(end()));
  };
  openScopes.add(endScope);
  after(endScope);
  return { after: (end) => void ends.push({ end, where: new Error().stack?.slice('Error'.length) ?? '' }) };
}

/**
 * Runs a function at the end of the scope. Node keeps the hooks of a test, and all that they refer to, until the process ends;
 * this one refers to nothing any more when it has run. For what needs much memory, such as a gateway.
 */
export function endWith(scope: TestScope, end: () => unknown): void {
  let pending: (() => unknown) | undefined = end;
  scope.after(async () => {
    const run = pending;
    pending = undefined;
    await run?.();
  });
}

// Node does not run the hooks of a `describe` of which a filter (`--test-name-pattern`) has removed all tests. A thread has no tests.
if (isMainThread)
  after(async () => {
    for (const endScope of openScopes) await endScope();
  });
