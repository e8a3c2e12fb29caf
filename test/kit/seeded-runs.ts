/** Random tests that can be run again as they were. */

import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';

/** A new seed or that of `FUZZ_SEED`, printed in the test's output, and how many runs it is for. */
export function seededRuns(
  t: TestContext,
  numRuns: number,
): { readonly seed: number; readonly numRuns: number } {
  const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));
  t.diagnostic(`${numRuns} runs with seed ${seed}`);
  return { seed, numRuns };
}
