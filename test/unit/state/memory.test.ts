/** State in memory keeps the contract, encrypted or not, on a clock that the test sets. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { encryptKeyValues } from '../../../src/state/encryption.ts';
import { createExpiringMap, createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { testKeyValues } from '../../contract/key-values-contract.ts';
import { testPubSub } from '../../contract/pubsub-contract.ts';
import { testSets } from '../../contract/sets-contract.ts';
import { createManualClock, type StateUnderTest } from '../../contract/state-contract.ts';
import { testTokenBuckets } from '../../contract/token-buckets-contract.ts';

/** @param clientOf a client's way to a state */
const kindOf = (clientOf: (state: State) => State): StateUnderTest => ({
  skip: false,
  async store() {
    const clock = createManualClock();
    const state = createMemoryState(clock.now);
    return {
      client: async () => clientOf(state),
      otherClient: async () => clientOf(createMemoryState(clock.now)),
      ...clock,
    };
  },
});

describe('state in memory', () => {
  const inMemory = kindOf((state) => state);
  testKeyValues(inMemory);
  testSets(inMemory);
  testTokenBuckets(inMemory);
  testPubSub(inMemory);
});

describe('state in memory, encrypted', () => {
  const keys = [randomBytes(32), randomBytes(32)] as const;
  testKeyValues(kindOf((state) => ({ ...state, keyValues: encryptKeyValues(state.keyValues, keys) })));
});

describe('state in memory, encrypted while the key is changed', () => {
  const [one, other] = [randomBytes(32), randomBytes(32)];
  let turn = 0;
  const keysInTurn = () => (turn++ % 2 === 0 ? ([one, other] as const) : ([other, one] as const));
  testKeyValues(
    kindOf((state) => ({ ...state, keyValues: encryptKeyValues(state.keyValues, keysInTurn()) })),
  );
});

describe('an expiring map', () => {
  const onClock = () => {
    let nowMs = 0;
    const map = createExpiringMap<string>(() => nowMs);
    return { map, pass: (ms: number) => (nowMs += ms) };
  };

  test('a value is there until its time is over, and not at that instant', () => {
    const { map, pass } = onClock();
    map.write('key', 'value', 100);
    pass(99);
    assert.equal(map.read('key'), 'value');
    pass(1);
    assert.equal(map.read('key'), undefined);
    assert.equal(map.size(), 0);
  });

  test('what nobody asks for any more is dropped while others are written', () => {
    const { map, pass } = onClock();
    for (let index = 0; index < 1_000; index++) map.write(`old ${index}`, 'value', 10);
    map.write('for ever', 'value');
    pass(10);
    for (let index = 0; index < 600; index++) map.write('busy', 'value', 10);
    assert.equal(map.size(), 2);
    assert.equal(map.read('for ever'), 'value');
  });

  test('it does not grow without bound while short-lived values come and go', () => {
    const { map, pass } = onClock();
    let most = 0;
    for (let index = 0; index < 10_000; index++) {
      map.write(`key ${index}`, 'value', 100);
      pass(1);
      most = Math.max(most, map.size());
    }
    assert.ok(most < 300, `${most} entries were held, of which 100 lived`);
  });

  test('what is dropped while the round goes on does no harm', () => {
    const { map } = onClock();
    for (let index = 0; index < 20; index++) {
      map.write(`key ${index}`, 'value');
      map.remove(`key ${index - 1}`);
    }
    assert.equal(map.size(), 1);
    assert.equal(map.read('key 19'), 'value');
  });
});
