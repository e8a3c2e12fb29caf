/** Runs cleanup functions after a measurement. */

import type { TestScope } from '../test/kit/test-scope.ts';

/** Runs a function, then its registered cleanups in reverse order, also after an error or SIGINT. */
export async function withCleanup(act: (life: TestScope) => Promise<void>): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  const cleanUp = async () => {
    for (const one of cleanups.splice(0).toReversed()) await one();
  };
  const onInterrupt = () => void cleanUp().finally(() => process.exit(130));
  process.once('SIGINT', onInterrupt);
  try {
    await act({ after: (one) => void cleanups.push(one) });
  } finally {
    await cleanUp();
    process.off('SIGINT', onInterrupt);
  }
}
