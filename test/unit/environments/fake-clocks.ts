/** Fake clocks, for records that are stored for more than a year. */

import type { TestContext } from 'node:test';

export const dayMs = 24 * 3_600_000;

/** Fakes `Date.now` and `performance.now`. @returns advances both by this many milliseconds */
export function useFakeClocks(t: TestContext): (ms: number) => void {
  let monotonicMs = 1_000_000;
  t.mock.method(performance, 'now', () => monotonicMs);
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T12:00:00Z') });
  return (ms) => {
    monotonicMs += ms;
    t.mock.timers.setTime(Date.now() + ms);
  };
}
