/** The contract of the state, tested on a Redis cluster in real time. */

import { describe } from 'node:test';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { type RawStateUnderTest, testInvalidUtf8 } from './invalid-utf8-contract.ts';
import { testKeyValues } from './key-values-contract.ts';
import { testPubSub } from './pubsub-contract.ts';
import { createRedisTestStore } from './redis-test-store.ts';
import { testTokenBuckets } from './token-buckets-contract.ts';

const urls = skipWithoutRedisServer ? [] : (await startRedisCluster(scopeOfAllTests())).urls;

const cluster: RawStateUnderTest = {
  skip: skipWithoutRedisServer,
  createStore: async (t) => createRedisTestStore(t, { kind: 'cluster', urls: [...urls] }),
};

describe('the Redis cluster state', () => {
  testKeyValues(cluster);
  testInvalidUtf8(cluster);
  testTokenBuckets(cluster);
  testPubSub(cluster);
});
