/** State in one Redis keeps the contract, in real time. */

import { describe } from 'node:test';
import { lifeOfAllTests } from '../kit/life.ts';
import { sharedRedis, withoutRedis } from '../kit/redis.ts';
import type { KindOfState } from './kind-of-state.ts';
import { promisesOfAnnouncements } from './promises-of-announcements.ts';
import { promisesOfKeyValues } from './promises-of-key-values.ts';
import { promisesOfReservations } from './promises-of-reservations.ts';
import { promisesOfSets } from './promises-of-sets.ts';
import { storeIn } from './redis-stores.ts';

const url = withoutRedis ? '' : await sharedRedis(lifeOfAllTests());

const inRedis: KindOfState = {
  skip: withoutRedis,
  store: async (t) => storeIn(t, { kind: 'single', url }),
};

describe('state in Redis', () => {
  promisesOfKeyValues(inRedis);
  promisesOfSets(inRedis);
  promisesOfReservations(inRedis);
  promisesOfAnnouncements(inRedis);
});
