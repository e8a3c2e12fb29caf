/** Counts the comparisons that take the same time for all inputs of a length. */

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

/** @returns the number of `timingSafeEqual` calls since then, until the test ends */
export function countConstantTimeComparisons(t: TestContext): () => number {
  const compare = t.mock.method(crypto, 'timingSafeEqual');
  syncBuiltinESMExports(); // so that `import { timingSafeEqual }` is mocked as well
  t.after(() => {
    compare.mock.restore();
    syncBuiltinESMExports();
  });
  return () => compare.mock.callCount();
}
