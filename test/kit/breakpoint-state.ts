/** A way to a state on which a write can be held at an exact step of its entry in the ledger. */

import type { KeyValues, State } from '../../src/state/ports.ts';

/** Where a write stands: the operation that takes it to the next step is not begun, or this one is done and not told. */
export type Breakpoint = 'before the claim' | 'claimed' | 'sending' | 'answered' | 'stored';

/** @param reach called at each step with the `X-Request-ID`; the write goes on when it comes back */
export function createBreakpointState(
  shared: State,
  reach: (requestId: string, step: Breakpoint) => Promise<void>,
): State {
  const { keyValues } = shared;

  async function around(
    [before, after]: readonly [before?: Breakpoint | undefined, after?: Breakpoint | undefined],
    [key, value]: readonly [key: string, value: string],
    act: () => Promise<boolean>,
  ): Promise<boolean> {
    const requestId = /^ledger:entry:/.test(key) ? parseEntry(value).requestId : undefined;
    if (requestId === undefined) return act();
    if (before) await reach(requestId, before);
    const isDone = await act();
    if (isDone && after) await reach(requestId, after);
    return isDone;
  }

  const stepping: KeyValues = {
    ...keyValues,
    writeIfAbsent: (key, value, ttlMs) =>
      around(['before the claim', 'claimed'], [key, value], () => keyValues.writeIfAbsent(key, value, ttlMs)),
    replace: (key, expected, value, ttlMs) =>
      around(breakpointsAround(value), [key, value], () => keyValues.replace(key, expected, value, ttlMs)),
  };
  return { ...shared, keyValues: stepping };
}

function breakpointsAround(
  value: string,
): readonly [before?: Breakpoint | undefined, after?: Breakpoint | undefined] {
  switch (parseEntry(value).step) {
    case 'sending':
      return [undefined, 'sending'];
    case 'answered':
      return ['answered', 'stored'];
    default:
      return [];
  }
}

/** An entry that was given back says nothing. */
function parseEntry(value: string): Readonly<Record<string, string>> {
  return value === '' ? {} : JSON.parse(value);
}
