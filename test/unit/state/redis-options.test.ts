import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  clusterOptions,
  nodeOptions,
  sentinelOptions,
  singleOptions,
  startupNodes,
} from '../../../src/state/redis-options.ts';

const timeoutMs = 250;

const optionsOf = (url: string) => {
  const { host, port, db, username, password, tls } = singleOptions({ kind: 'single', url }, timeoutMs);
  return { host, port, db, username, password, tls };
};
const noCredentials = { username: undefined, password: undefined, tls: undefined };

describe('the options of Redis connections', () => {
  test('take host, port, database, credentials and TLS from the address', () => {
    assert.deepEqual(optionsOf('redis://redis.example'), {
      host: 'redis.example',
      port: 6379,
      db: 0,
      ...noCredentials,
    });
    assert.deepEqual(optionsOf('redis://[::1]:7000/3'), { host: '::1', port: 7000, db: 3, ...noCredentials });
    assert.deepEqual(optionsOf('rediss://user:p%40ss%2Fword@redis.example/'), {
      host: 'redis.example',
      port: 6379,
      db: 0,
      username: 'user',
      password: 'p@ss/word',
      tls: {},
    });
    assert.equal(optionsOf('redis://:100%@redis.example').password, '100%');
  });

  test('use the credentials of the first sentinel address for all sentinels and their master', () => {
    const urls = ['rediss://user:word@one.example/2', 'rediss://two.example:7000'];
    const options = sentinelOptions({ kind: 'sentinels', urls, name: 'main' }, timeoutMs);
    assert.deepEqual(options.sentinels, [
      { host: 'one.example', port: 26379 },
      { host: 'two.example', port: 7000 },
    ]);
    const { name, db, username, password, sentinelUsername, sentinelPassword } = options;
    assert.deepEqual([name, db, username, password], ['main', 2, 'user', 'word']);
    assert.deepEqual([sentinelUsername, sentinelPassword], ['user', 'word']);
    assert.deepEqual([options.tls, options.sentinelTLS, options.enableTLSForSentinelMode], [{}, {}, true]);
  });

  test('omit credentials and TLS for sentinels whose address has none', () => {
    const options = sentinelOptions(
      { kind: 'sentinels', urls: ['redis://one.example'], name: 'main' },
      timeoutMs,
    );
    for (const absent of ['tls', 'username', 'password', 'sentinelTLS', 'sentinelPassword']) {
      assert.equal(absent in options, false, absent);
    }
  });

  test('use the credentials of the first cluster address for all nodes', () => {
    const settings = {
      kind: 'cluster' as const,
      urls: ['rediss://:word@one.example', 'redis://two.example:7001'],
    };
    assert.deepEqual(startupNodes(settings), [
      { host: 'one.example', port: 6379 },
      { host: 'two.example', port: 7001 },
    ]);
    const { password, tls } = nodeOptions(settings, timeoutMs);
    assert.deepEqual([password, tls], ['word', {}]);
    assert.deepEqual(clusterOptions(settings, timeoutMs).redisOptions, nodeOptions(settings, timeoutMs));
  });

  test('leave at least twice the timeout of a command to the handshake, and twice that to a silent connection', () => {
    const settings = { kind: 'single' as const, url: 'redis://redis.example' };
    for (const [commandMs, handshakeMs] of [
      [50, 500],
      [250, 500],
      [2_000, 4_000],
    ] as const) {
      const { commandTimeout, socketTimeout, connectTimeout } = singleOptions(settings, commandMs);
      assert.deepEqual([commandTimeout, socketTimeout], [handshakeMs, 2 * handshakeMs]);
      assert.ok(connectTimeout >= commandMs);
    }
  });

  test('disable queueing and resending of commands during an outage', () => {
    const options = singleOptions({ kind: 'single', url: 'redis://redis.example' }, timeoutMs);
    assert.equal(options.enableOfflineQueue, false);
    assert.equal(options.maxRetriesPerRequest, 0);
    assert.equal(options.autoResendUnfulfilledCommands, false);
    assert.deepEqual([1, 5, 10, 1_000].map(options.retryStrategy), [50, 250, 500, 500]);
    const cluster = clusterOptions({ kind: 'cluster', urls: ['redis://redis.example'] }, timeoutMs);
    assert.deepEqual([cluster.enableOfflineQueue, cluster.retryDelayOnFailover], [false, 0]);
  });
});
