/** A state that pauses a write at a chosen step of its ledger entry. */

import type { KeyValues, State } from '../../src/state/ports.ts';

/** Before the operation that starts the step, or after the operation that completes it, before its result is returned. */
export type Breakpoint = 'before the claim' | 'claimed' | 'sending' | 'answered' | 'stored';

/** @param onBreakpoint called at each step with the `X-Request-ID`; the write continues when it returns */
export function createBreakpointState(
  shared: State,
  onBreakpoint: (requestId: string, breakpoint: Breakpoint) => Promise<void>,
): State {
  const { keyValues } = shared;

  async function pauseAround(
    [before, after]: readonly [before?: Breakpoint | undefined, after?: Breakpoint | undefined],
    [key, value]: readonly [key: string, value: string],
    execute: () => Promise<boolean>,
  ): Promise<boolean> {
    const requestId = /^ledger:entry:/.test(key) ? parseEntry(value).requestId : undefined;
    if (requestId === undefined) return execute();
    if (before) await onBreakpoint(requestId, before);
    const isDone = await execute();
    if (isDone && after) await onBreakpoint(requestId, after);
    return isDone;
  }

  const pausing: KeyValues = {
    ...keyValues,
    writeIfAbsent: (key, value, ...rest) =>
      pauseAround(['before the claim', 'claimed'], [key, value], () =>
        keyValues.writeIfAbsent(key, value, ...rest),
      ),
    replace: (key, expected, value, ...rest) =>
      pauseAround(breakpointsAround(value), [key, value], () =>
        keyValues.replace(key, expected, value, ...rest),
      ),
  };
  return { ...shared, keyValues: pausing };
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

/** A released entry is an empty text. */
function parseEntry(value: string): Readonly<Record<string, string>> {
  return value === '' ? {} : JSON.parse(value);
}
