/** Runs before the tests: installs Redis if it is missing and may be installed, otherwise prints how to install it. */

import { howToGetRedis, redisIsRequired, redisProgram, runningRedis } from '../test/kit/find-redis.ts';
import { install, mayInstall } from './apt.ts';

const found = () => runningRedis() ?? redisProgram();

if (!found() && mayInstall()) install('redis-server', 'a Redis');
if (!found()) {
  console.error(
    `Redis is not installed: the tests that need it are skipped. To install it: ${howToGetRedis}`,
  );
  if (redisIsRequired()) process.exitCode = 1;
}
