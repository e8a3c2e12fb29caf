/** What `penstock check` says about the Redis of the configuration. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { writeConfigFile } from '../../kit/command.ts';
import { startCommandRunner } from '../../kit/command-runner.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort } from '../../kit/ports.ts';
import { skipWithoutRedisServer, startRedis } from '../../kit/redis.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const runCommand = startCommandRunner(scopeOfAllTests());

/** Checks a configuration about which there is no other warning. */
function runCheck(t: TestContext, redis: string) {
  const sections = {
    environments: { sandbox: { baseUrl: 'https://bank.test' } },
    admin: { operators: [{ name: 'ann', tokenSha256: 'ab12'.repeat(16) }] },
    state: { redis, file: `${temporaryFolder(t)}/state` },
  };
  return runCommand(['check', '--connect', '--config', writeConfigFile(t, JSON.stringify(sections))]);
}

describe('penstock check', { skip: skipWithoutRedisServer }, () => {
  test('reports nothing about a Redis that can be used', async (t) => {
    const result = await runCheck(t, (await startRedis(t)).url);
    assert.equal(result.exitCode, 0);
    assert.equal(result.stdout, 'The configuration is valid.\n');
  });

  test('fails if Redis may evict keys, and says what to change', async (t) => {
    const redis = await startRedis(t, ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']);
    const result = await runCheck(t, redis.url);
    assert.equal(result.exitCode, 78);
    assert.match(result.stderr, /may evict data.*allkeys-lru.*set maxmemory-policy to noeviction/);
  });
});

test('penstock check reports a Redis that cannot be reached, and succeeds', async (t) => {
  const result = await runCheck(t, `redis://127.0.0.1:${await freePort()}`);
  assert.equal(result.exitCode, 0);
  assert.match(
    result.stdout,
    /^The configuration is valid\.\nNot checked: Redis unavailable \(.*ECONNREFUSED/,
  );
});
