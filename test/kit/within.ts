/** Waits for a condition, with a limit. */

import { clearTimeout, setTimeout as setTimer } from 'node:timers';
import { setImmediate, setTimeout } from 'node:timers/promises';

/** The bounds of tests are chosen for an idle machine. A busy or slow one may take this much longer. */
const patience = 3;

/** The promise's value; fails with `what` if it takes longer than `ms` milliseconds times `patience`. */
export async function within<Value>(ms: number, what: string, promise: Promise<Value>): Promise<Value> {
  const maxMs = ms * patience;
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimer(() => reject(new Error(`waited ${maxMs} ms for ${what}`)), maxMs);
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

/** The real clock, also in tests that fake the time of the code under test. */
const realNow = performance.now.bind(performance);

/** For how long the checks come one after the other without a pause. */
const eagerMs = 1;

/** The pause between two checks then grows with the time that has passed: the checks of a long wait leave the cores to others. */
const pauseAfter = (passedMs: number) => Math.min(50, Math.max(1, passedMs / 8));

/**
 * Waits until the condition holds; fails with `what` if it does not within `ms` milliseconds times `patience`. A function
 * for `what` is called at the failure, and can tell what was seen last.
 */
export async function until(
  ms: number,
  what: string | (() => string),
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const startedAtMs = realNow();
  while (!(await condition())) {
    const passedMs = realNow() - startedAtMs;
    if (passedMs > ms * patience)
      throw new Error(`waited ${ms * patience} ms until ${typeof what === 'string' ? what : what()}`);
    await (passedMs < eagerMs ? setImmediate() : setTimeout(pauseAfter(passedMs)));
  }
}
