/** Runs cleanup functions after a measurement. */

import type { Life } from '../test/kit/life.ts';

/** Runs a function, then its registered cleanups in reverse order, also after an error or SIGINT. */
export async function withCleanup(act: (life: Life) => Promise<void>): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  const cleanUp = async () => {
    for (const one of cleanups.splice(0).toReversed()) await one();
  };
  process.once('SIGINT', () => void cleanUp().finally(() => process.exit(130)));
  try {
    await act({ after: (one) => void cleanups.push(one) });
  } finally {
    await cleanUp();
  }
}
