/** State in a file keeps the contract, encrypted or not, on a clock that the test sets. */

import { randomBytes } from 'node:crypto';
import { describe } from 'node:test';
import { encrypted } from '../../src/state/encrypted.ts';
import { createFileState } from '../../src/state/file.ts';
import type { State } from '../../src/state/ports.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { clockOfTheTest, type KindOfState } from './kind-of-state.ts';
import { promisesOfAnnouncements } from './promises-of-announcements.ts';
import { promisesOfKeyValues } from './promises-of-key-values.ts';
import { promisesOfReservations } from './promises-of-reservations.ts';
import { promisesOfSets } from './promises-of-sets.ts';

/** @param clientOf a client's way to a state */
const kindOf = (clientOf: (state: State) => State): KindOfState => ({
  skip: false,
  async store(t) {
    const clock = clockOfTheTest();
    const folder = temporaryFolder(t);
    const opened = async (name: string) => {
      const clocks = { wall: clock.now, steady: clock.now };
      const state = createFileState(`${folder}/${name}`, () => {}, clocks);
      t.after(() => state.close());
      await state.open();
      return state;
    };
    const ours = await opened('ours');
    return {
      client: async () => clientOf(ours),
      stranger: async () => clientOf(await opened('theirs')),
      ...clock,
    };
  },
});

describe('state in a file', () => {
  const inFile = kindOf((state) => state);
  promisesOfKeyValues(inFile);
  promisesOfSets(inFile);
  promisesOfReservations(inFile);
  promisesOfAnnouncements(inFile);
});

describe('state in a file, encrypted', () => {
  const keys = [randomBytes(32)] as const;
  promisesOfKeyValues(kindOf((state) => ({ ...state, keyValues: encrypted(state.keyValues, keys) })));
});
