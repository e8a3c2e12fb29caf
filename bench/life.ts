/** How long a measurement lasts, and what ends with it. */

import type { Life } from '../test/kit/life.ts';

/** Does something, and then all that was asked to be done at its end, the last first; also if it fails or is interrupted. */
export async function during(act: (life: Life) => Promise<void>): Promise<void> {
  const ends: (() => unknown)[] = [];
  const end = async () => {
    for (const one of ends.splice(0).toReversed()) await one();
  };
  process.once('SIGINT', () => void end().finally(() => process.exit(130)));
  try {
    await act({ after: (one) => void ends.push(one) });
  } finally {
    await end();
  }
}
