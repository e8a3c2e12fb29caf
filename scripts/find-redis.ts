/** Sees to it, before the tests, that there is a Redis for them: installs one where it may, else says how to. */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { howToGetRedis, redisIsRequired, redisProgram, runningRedis } from '../test/kit/find-redis.ts';

const found = () => runningRedis() ?? redisProgram();

const aptGet = '/usr/bin/apt-get';

/** Whether packages may be installed here. */
const mayInstall = () => process.getuid?.() === 0 && existsSync(aptGet);

function apt(...args: readonly string[]): boolean {
  const { status } = spawnSync(aptGet, ['-qq', '-o', 'Acquire::Retries=1', ...args], {
    stdio: 'ignore',
    timeout: 120_000,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return status === 0;
}

if (!found() && mayInstall()) {
  console.log('The tests need a Redis: installing redis-server.');
  apt('update') && apt('install', '-y', '--no-install-recommends', 'redis-server');
}
if (!found()) {
  console.error(`There is no Redis: the tests that need one are skipped. Get one: ${howToGetRedis}`);
  if (redisIsRequired()) process.exitCode = 1;
}
