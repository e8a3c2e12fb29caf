/** Waits that have a condition and a bound: nothing in the tests sleeps, and nothing waits for ever. */

import { setImmediate, setTimeout } from 'node:timers/promises';

/** The promise's value; fails with `what` if it takes longer than `ms` milliseconds. */
export async function within<Value>(ms: number, what: string, promise: Promise<Value>): Promise<Value> {
  const stop = new AbortController();
  const tooLate = setTimeout(ms, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`waited ${ms} ms in vain for ${what}`);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    stop.abort();
    tooLate.catch(() => {});
  }
}

/** Comes back when the condition holds; fails with `what` if it does not within `ms` milliseconds. */
export async function until(
  ms: number,
  what: string,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${ms} ms in vain until ${what}`);
    await setImmediate();
  }
}
