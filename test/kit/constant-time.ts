/** Watches how secrets are compared: with a comparison that takes as long whatever differs. */

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

/** From now on until the test ends, how often two values were compared in constant time. */
export function countConstantTimeComparisons(t: TestContext): () => number {
  const compare = t.mock.method(crypto, 'timingSafeEqual');
  syncBuiltinESMExports(); // so that `import { timingSafeEqual }` sees it
  t.after(() => {
    compare.mock.restore();
    syncBuiltinESMExports();
  });
  return () => compare.mock.callCount();
}
