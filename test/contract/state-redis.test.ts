/** The contract of the state, tested on one Redis in real time. */

import { describe } from 'node:test';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { type RawStateUnderTest, testInvalidUtf8 } from './invalid-utf8-contract.ts';
import { testKeyValues } from './key-values-contract.ts';
import { testPubSub } from './pubsub-contract.ts';
import { createRedisTestStore } from './redis-test-store.ts';
import { testTokenBuckets } from './token-buckets-contract.ts';

const url = skipWithoutRedis ? '' : await sharedRedisUrl(scopeOfAllTests());

const redis: RawStateUnderTest = {
  skip: skipWithoutRedis,
  createStore: async (t) => createRedisTestStore(t, { kind: 'single', url }),
};

describe('the Redis state', () => {
  testKeyValues(redis);
  testInvalidUtf8(redis);
  testTokenBuckets(redis);
  testPubSub(redis);
});
