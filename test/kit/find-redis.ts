/** Where the tests find a Redis: one that runs already, or a program to start. */

import { onPath } from './on-path.ts';

/** The program to start, or `undefined` if there is none: `REDIS_SERVER_BIN`, else the first on the PATH. */
export const redisProgram = (): string | undefined =>
  process.env.REDIS_SERVER_BIN ?? onPath('redis-server') ?? onPath('valkey-server');

/** The address of a Redis that runs already, if the environment names one. */
export const runningRedis = (): string | undefined => process.env.REDIS_URL;

/** How to install one. */
export const howToGetRedis =
  'apt-get install redis-server, or brew install redis, or apk add redis, or ' +
  'docker run -p 6379:6379 redis:7 with REDIS_URL=redis://127.0.0.1:6379';

/** Where a missing Redis is a failure and not a skip. */
export const redisIsRequired = (): boolean => process.env.CI === 'true';
