/** State in one Redis keeps the contract, in real time. */

import { describe } from 'node:test';
import { lifeOfAllTests } from '../kit/life.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { type RawStateUnderTest, testInvalidUtf8 } from './invalid-utf8-contract.ts';
import { testKeyValues } from './key-values-contract.ts';
import { testPubSub } from './pubsub-contract.ts';
import { createRedisTestStore } from './redis-test-store.ts';
import { testSets } from './sets-contract.ts';
import { testTokenBuckets } from './token-buckets-contract.ts';

const url = skipWithoutRedis ? '' : await sharedRedisUrl(lifeOfAllTests());

const inRedis: RawStateUnderTest = {
  skip: skipWithoutRedis,
  store: async (t) => createRedisTestStore(t, { kind: 'single', url }),
};

describe('state in Redis', () => {
  testKeyValues(inRedis);
  testInvalidUtf8(inRedis);
  testSets(inRedis);
  testTokenBuckets(inRedis);
  testPubSub(inRedis);
});
