/** Waits for a condition, with a limit. */

import { setImmediate, setTimeout } from 'node:timers/promises';

/** The promise's value; fails with `what` if it takes longer than `ms` milliseconds. */
export async function within<Value>(ms: number, what: string, promise: Promise<Value>): Promise<Value> {
  const stop = new AbortController();
  const tooLate = setTimeout(ms, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`waited ${ms} ms for ${what}`);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    stop.abort();
    tooLate.catch(() => {});
  }
}

/** Checks that come one after the other without a pause; then one every few milliseconds, to leave the cores to others. */
const eagerChecks = 50;
const pauseMs = 5;

/** The bounds of `until` are chosen for an idle machine. A busy or slow one may take this much longer. */
const patience = 3;

/** Waits until the condition holds; fails with `what` if it does not within `ms` milliseconds times `patience`. */
export async function until(
  ms: number,
  what: string,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + ms * patience;
  for (let checks = 1; !(await condition()); checks++) {
    if (performance.now() > deadline) throw new Error(`waited ${ms * patience} ms until ${what}`);
    await (checks < eagerChecks ? setImmediate() : setTimeout(pauseMs));
  }
}
