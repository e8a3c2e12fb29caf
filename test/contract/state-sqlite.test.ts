/** The contract of the state, tested on SQLite files, with and without encryption, on a manual clock. */

import { randomBytes } from 'node:crypto';
import { describe } from 'node:test';
import { encryptKeyValues, encryptSchedules } from '../../src/state/encryption.ts';
import { createSqliteState } from '../../src/state/former/sqlite.ts';
import type { State } from '../../src/state/ports.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { testKeyValues } from './key-values-contract.ts';
import { testPubSub } from './pubsub-contract.ts';
import { testSchedules } from './schedules-contract.ts';
import { createManualClock, type StateUnderTest } from './state-contract.ts';
import { testTokenBuckets } from './token-buckets-contract.ts';

/** @param wrap makes the state of one client */
const sqlite = (wrap: (state: State) => State = (state) => state): StateUnderTest => ({
  skip: false,
  async createStore(t) {
    const clock = createManualClock();
    const folder = temporaryFolder(t);
    const open = async (name: string) => {
      const clocks = { wall: clock.now, monotonic: clock.now };
      const state = createSqliteState(`${folder}/${name}`, () => {}, clocks);
      t.after(() => state.close());
      await state.open();
      return state;
    };
    const state = await open('state');
    return {
      client: async () => wrap(state),
      otherClient: async () => wrap(await open('other-state')),
      ...clock,
    };
  },
});

describe('the SQLite state', () => {
  testKeyValues(sqlite());
  testSchedules(sqlite());
  testTokenBuckets(sqlite());
  testPubSub(sqlite());
});

describe('the encrypted SQLite state', () => {
  const keys = [randomBytes(32)] as const;
  const encrypted = sqlite((state) => ({
    ...state,
    keyValues: encryptKeyValues(state.keyValues, keys),
    schedules: encryptSchedules(state.schedules, keys),
  }));
  testKeyValues(encrypted);
  testSchedules(encrypted);
});
