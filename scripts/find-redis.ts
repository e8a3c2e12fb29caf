/** Sees to it, before the tests, that there is a Redis for them: installs one where it may, else says how to. */

import { howToGetRedis, redisIsRequired, redisProgram, runningRedis } from '../test/kit/find-redis.ts';
import { install, mayInstall } from './apt.ts';

const found = () => runningRedis() ?? redisProgram();

if (!found() && mayInstall()) install('redis-server', 'a Redis');
if (!found()) {
  console.error(`There is no Redis: the tests that need one are skipped. Get one: ${howToGetRedis}`);
  if (redisIsRequired()) process.exitCode = 1;
}
