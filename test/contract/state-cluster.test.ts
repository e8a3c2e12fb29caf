/** State in a cluster of Redis keeps the contract, in real time. */

import { describe } from 'node:test';
import { lifeOfAllTests } from '../kit/life.ts';
import { withoutRedisServer } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { promisesOfAnnouncements } from './promises-of-announcements.ts';
import { promisesOfKeyValues } from './promises-of-key-values.ts';
import { promisesOfReservations } from './promises-of-reservations.ts';
import { promisesOfSets } from './promises-of-sets.ts';
import { promisesOfSpoiltValues, type SpoilableKind } from './promises-of-spoilt-values.ts';
import { storeIn } from './redis-stores.ts';

const urls = withoutRedisServer ? [] : (await startRedisCluster(lifeOfAllTests())).urls;

const inCluster: SpoilableKind = {
  skip: withoutRedisServer,
  store: async (t) => storeIn(t, { kind: 'cluster', urls: [...urls] }),
};

describe('state in a cluster of Redis', () => {
  promisesOfKeyValues(inCluster);
  promisesOfSpoiltValues(inCluster);
  promisesOfSets(inCluster);
  promisesOfReservations(inCluster);
  promisesOfAnnouncements(inCluster);
});
