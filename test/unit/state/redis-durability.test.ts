import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { durabilityProblems } from '../../../src/state/redis-durability.ts';

/** INFO of a server that keeps everything, with these fields changed. */
function infoWith(fields: Readonly<Record<string, string>> = {}): string {
  const lines = {
    redis_version: '7.0.15',
    rdb_saves: '0',
    aof_enabled: '1',
    aof_last_write_status: 'ok',
    role: 'master',
    connected_slaves: '1',
    ...fields,
  };
  return `# Server\r\n${Object.entries(lines)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')}`;
}

describe('the durability of Redis', () => {
  test('has no problem with an append-only file, a replica and a supported version', () => {
    assert.deepEqual(durabilityProblems([infoWith()]), []);
    assert.deepEqual(durabilityProblems([infoWith(), infoWith({ redis_version: '5.0.0' })]), []);
  });

  const problems: Readonly<Record<string, [fields: Record<string, string>, says: RegExp]>> = {
    'nothing on the disk': [
      { aof_enabled: '0' },
      /^Redis: no persistence .*aof_enabled:0.*rdb_saves:0.*set appendonly to yes$/,
    ],
    'only snapshots on the disk': [
      { aof_enabled: '0', rdb_saves: '3' },
      /^Redis: no append-only file .*aof_enabled:0.*set appendonly to yes$/,
    ],
    'an unknown number of snapshots, as before Redis 7.0': [
      { aof_enabled: '0', rdb_saves: '' },
      /^Redis: no append-only file/,
    ],
    'an append-only file that cannot be written': [
      { aof_last_write_status: 'err' },
      /^Redis: the last write to the append-only file failed .*check the disk/,
    ],
    'no replica': [{ connected_slaves: '0' }, /^Redis: no replica .*connect a replica$/],
    'a version that refuses the script of the gateway': [
      { redis_version: '4.0.14' },
      /^Redis: version 4\.0\.14 is too old .*upgrade to 5\.0/,
    ],
  };
  for (const [name, [fields, says]] of Object.entries(problems)) {
    test(`names ${name}, and what to change`, () => {
      const found = durabilityProblems([infoWith(fields)]);
      assert.equal(found.length, 1);
      assert.match(found[0] ?? '', says);
    });
  }

  test('counts the masters of a cluster that have the same problem', () => {
    const [first, ...others] = durabilityProblems([
      infoWith(),
      infoWith({ aof_enabled: '0', connected_slaves: '0' }),
      infoWith({ aof_enabled: '0' }),
    ]);
    assert.match(first ?? '', /^2 of 3 masters of the Redis Cluster: no persistence/);
    assert.match(others.join(), /^1 of 3 masters of the Redis Cluster: no replica/);
  });
});
