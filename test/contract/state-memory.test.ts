/** State in memory keeps the contract, on a clock that the test sets. */

import { describe } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createMemoryState } from '../../src/state/memory.ts';
import type { KindOfState } from './kind-of-state.ts';
import { promisesOfAnnouncements } from './promises-of-announcements.ts';
import { promisesOfKeyValues } from './promises-of-key-values.ts';
import { promisesOfReservations } from './promises-of-reservations.ts';
import { promisesOfSets } from './promises-of-sets.ts';

const inMemory: KindOfState = {
  skip: false,
  async store() {
    let nowMs = 1_000_000;
    const state = createMemoryState(() => nowMs);
    return {
      client: async () => state,
      stranger: async () => createMemoryState(() => nowMs),
      now: () => nowMs,
      async until(ms, what, condition) {
        const deadline = nowMs + ms;
        while (!(await condition())) {
          if (nowMs > deadline) throw new Error(`${ms} ms passed in vain until ${what}`);
          nowMs += 1;
          await setImmediate();
        }
      },
    };
  },
};

describe('state in memory', () => {
  promisesOfKeyValues(inMemory);
  promisesOfSets(inMemory);
  promisesOfReservations(inMemory);
  promisesOfAnnouncements(inMemory);
});
