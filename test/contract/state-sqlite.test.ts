/** State in a file keeps the contract, encrypted or not, on a clock that the test sets. */

import { randomBytes } from 'node:crypto';
import { describe } from 'node:test';
import { encryptKeyValues } from '../../src/state/encryption.ts';
import type { State } from '../../src/state/ports.ts';
import { createSqliteState } from '../../src/state/sqlite.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { testKeyValues } from './key-values-contract.ts';
import { testPubSub } from './pubsub-contract.ts';
import { testSets } from './sets-contract.ts';
import { createManualClock, type StateUnderTest } from './state-contract.ts';
import { testTokenBuckets } from './token-buckets-contract.ts';

/** @param clientOf a client's way to a state */
const kindOf = (clientOf: (state: State) => State): StateUnderTest => ({
  skip: false,
  async store(t) {
    const clock = createManualClock();
    const folder = temporaryFolder(t);
    const opened = async (name: string) => {
      const clocks = { wall: clock.now, steady: clock.now };
      const state = createSqliteState(`${folder}/${name}`, () => {}, clocks);
      t.after(() => state.close());
      await state.open();
      return state;
    };
    const ours = await opened('ours');
    return {
      client: async () => clientOf(ours),
      otherClient: async () => clientOf(await opened('theirs')),
      ...clock,
    };
  },
});

describe('state in a file', () => {
  const inFile = kindOf((state) => state);
  testKeyValues(inFile);
  testSets(inFile);
  testTokenBuckets(inFile);
  testPubSub(inFile);
});

describe('state in a file, encrypted', () => {
  const keys = [randomBytes(32)] as const;
  testKeyValues(kindOf((state) => ({ ...state, keyValues: encryptKeyValues(state.keyValues, keys) })));
});
