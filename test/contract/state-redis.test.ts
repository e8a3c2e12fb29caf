/** State in one Redis keeps the contract, in real time. */

import { describe } from 'node:test';
import { lifeOfAllTests } from '../kit/life.ts';
import { sharedRedis, withoutRedis } from '../kit/redis.ts';
import { promisesOfAnnouncements } from './promises-of-announcements.ts';
import { promisesOfKeyValues } from './promises-of-key-values.ts';
import { promisesOfReservations } from './promises-of-reservations.ts';
import { promisesOfSets } from './promises-of-sets.ts';
import { promisesOfSpoiltValues, type SpoilableKind } from './promises-of-spoilt-values.ts';
import { storeIn } from './redis-stores.ts';

const url = withoutRedis ? '' : await sharedRedis(lifeOfAllTests());

const inRedis: SpoilableKind = {
  skip: withoutRedis,
  store: async (t) => storeIn(t, { kind: 'single', url }),
};

describe('state in Redis', () => {
  promisesOfKeyValues(inRedis);
  promisesOfSpoiltValues(inRedis);
  promisesOfSets(inRedis);
  promisesOfReservations(inRedis);
  promisesOfAnnouncements(inRedis);
});
