/** State in memory keeps the contract, encrypted or not, on a clock that the test sets. */

import { randomBytes } from 'node:crypto';
import { describe } from 'node:test';
import { encrypted } from '../../../src/state/encrypted.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { clockOfTheTest, type KindOfState } from '../../contract/kind-of-state.ts';
import { promisesOfAnnouncements } from '../../contract/promises-of-announcements.ts';
import { promisesOfKeyValues } from '../../contract/promises-of-key-values.ts';
import { promisesOfReservations } from '../../contract/promises-of-reservations.ts';
import { promisesOfSets } from '../../contract/promises-of-sets.ts';

/** @param clientOf a client's way to a state */
const kindOf = (clientOf: (state: State) => State): KindOfState => ({
  skip: false,
  async store() {
    const clock = clockOfTheTest();
    const state = createMemoryState(clock.now);
    return {
      client: async () => clientOf(state),
      stranger: async () => clientOf(createMemoryState(clock.now)),
      ...clock,
    };
  },
});

describe('state in memory', () => {
  const inMemory = kindOf((state) => state);
  promisesOfKeyValues(inMemory);
  promisesOfSets(inMemory);
  promisesOfReservations(inMemory);
  promisesOfAnnouncements(inMemory);
});

describe('state in memory, encrypted', () => {
  const keys = [randomBytes(32), randomBytes(32)] as const;
  promisesOfKeyValues(kindOf((state) => ({ ...state, keyValues: encrypted(state.keyValues, keys) })));
});

describe('state in memory, encrypted while the key is changed', () => {
  const [one, other] = [randomBytes(32), randomBytes(32)];
  let turn = 0;
  const keysInTurn = () => (turn++ % 2 === 0 ? ([one, other] as const) : ([other, one] as const));
  promisesOfKeyValues(kindOf((state) => ({ ...state, keyValues: encrypted(state.keyValues, keysInTurn()) })));
});
