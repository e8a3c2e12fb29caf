import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { encryptKeyValues } from '../../../src/state/encryption.ts';
import { createExpiringMap, createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { testKeyValues } from '../../contract/key-values-contract.ts';
import { testPubSub } from '../../contract/pubsub-contract.ts';
import { createManualClock, type StateUnderTest } from '../../contract/state-contract.ts';
import { testTokenBuckets } from '../../contract/token-buckets-contract.ts';

/** @param wrap makes the state of one client */
const memory = (wrap: (state: State) => State = (state) => state): StateUnderTest => ({
  skip: false,
  async createStore() {
    const clock = createManualClock();
    const state = createMemoryState(clock.now);
    return {
      client: async () => wrap(state),
      otherClient: async () => wrap(createMemoryState(clock.now)),
      ...clock,
    };
  },
});

describe('the memory state', () => {
  testKeyValues(memory());
  testTokenBuckets(memory());
  testPubSub(memory());
});

describe('the encrypted memory state', () => {
  const keys = [randomBytes(32), randomBytes(32)] as const;
  testKeyValues(memory((state) => ({ ...state, keyValues: encryptKeyValues(state.keyValues, keys) })));
});

describe('the encrypted memory state, used by clients with different current keys', () => {
  const [one, other] = [randomBytes(32), randomBytes(32)];
  let clients = 0;
  const nextKeys = () => (clients++ % 2 === 0 ? ([one, other] as const) : ([other, one] as const));
  testKeyValues(memory((state) => ({ ...state, keyValues: encryptKeyValues(state.keyValues, nextKeys()) })));
});

describe('the expiring map', () => {
  const createMap = () => {
    let nowMs = 0;
    const map = createExpiringMap<string>(() => nowMs);
    return { map, pass: (ms: number) => (nowMs += ms) };
  };

  test('returns a value until its TTL has passed', () => {
    const { map, pass } = createMap();
    map.write('key', 'value', 100);
    pass(99);
    assert.equal(map.read('key'), 'value');
    pass(1);
    assert.equal(map.read('key'), undefined);
    assert.equal(map.size(), 0);
  });

  test('evicts expired entries during writes of other keys', () => {
    const { map, pass } = createMap();
    for (let index = 0; index < 1_000; index++) map.write(`old ${index}`, 'value', 10);
    map.write('no expiry', 'value');
    pass(10);
    for (let index = 0; index < 600; index++) map.write('busy', 'value', 10);
    assert.equal(map.size(), 2);
    assert.equal(map.read('no expiry'), 'value');
  });

  test('stays small while short-lived values come and go', () => {
    const { map, pass } = createMap();
    let largest = 0;
    for (let index = 0; index < 10_000; index++) {
      map.write(`key ${index}`, 'value', 100);
      pass(1);
      largest = Math.max(largest, map.size());
    }
    assert.ok(largest < 300, `${largest} entries for 100 live values`);
  });

  test('evicts correctly while entries are removed', () => {
    const { map } = createMap();
    for (let index = 0; index < 20; index++) {
      map.write(`key ${index}`, 'value');
      map.remove(`key ${index - 1}`);
    }
    assert.equal(map.size(), 1);
    assert.equal(map.read('key 19'), 'value');
  });
});
