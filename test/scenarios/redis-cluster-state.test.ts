/** A Redis cluster loses a master: only its keys are unavailable, and the client finds a replica that takes over. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { type RedisCluster, startRedisCluster } from '../kit/redis-cluster.ts';
import {
  assertUnavailable,
  assertUnavailableFor,
  openRedisState,
  untilAvailable,
} from '../kit/redis-outage.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const settingsOf = ({ urls }: RedisCluster) => ({ kind: 'cluster' as const, urls: [...urls] });

/** A key on each master, in the order of the masters. */
async function keysByMaster({ ownerOf }: RedisCluster): Promise<readonly string[]> {
  const keys = new Map<number, string>();
  for (let index = 0; keys.size < 3; index++) keys.set(await ownerOf(`test:key-${index}`), `key-${index}`);
  return [0, 1, 2].map((master) => keys.get(master) ?? '');
}

describe('the Redis cluster state', { skip: skipWithoutRedisServer }, () => {
  const life = scopeOfAllTests();
  let started: Promise<RedisCluster> | undefined;
  /** For tests that restore it: a cluster takes two seconds to start. */
  const sharedCluster = () => {
    started ??= startRedisCluster(life);
    return started;
  };

  test('refuses only the keys of a master that is down and has no replica', async (t) => {
    const cluster = await sharedCluster();
    const [lost = '', ...others] = await keysByMaster(cluster);
    const { keyValues, problem, problems } = await openRedisState(t, settingsOf(cluster));
    for (const key of [lost, ...others]) await keyValues.write(key, 'before');

    await cluster.masters[0]?.kill();
    const endMs = performance.now() + 1_500;
    while (performance.now() < endMs) {
      for (const key of others) assert.equal(await keyValues.read(key), 'before');
      await assertUnavailable(() => keyValues.write(lost, 'during the outage'));
    }
    assert.match(problem() ?? '', /Redis unavailable|does not serve all keys/);
    assert.equal(problems.length, 1);

    await cluster.masters[0]?.restart();
    await untilAvailable(5_000, () => keyValues.read(lost));
    assert.equal(await keyValues.read(lost), undefined, 'refused writes never take effect');
    await until(5_000, 'the problem ends', () => problem() === undefined);
  });

  test('refuses only the keys of a frozen master', async (t) => {
    const cluster = await sharedCluster();
    const [frozen = '', ...others] = await keysByMaster(cluster);
    const { keyValues, problem } = await openRedisState(t, settingsOf(cluster));
    for (const key of [frozen, ...others]) await keyValues.write(key, 'before');

    cluster.masters[0]?.freeze();
    await assertUnavailableFor(1_500, () => keyValues.read(frozen));
    for (const key of others) assert.equal(await keyValues.read(key), 'before');
    assert.match(problem() ?? '', /Redis unavailable/);

    cluster.masters[0]?.thaw();
    await untilAvailable(5_000, () => keyValues.read(frozen));
    assert.equal(await keyValues.read(frozen), 'before');
  });

  test('uses a replica that takes over, for commands and for pub/sub', async (t) => {
    const cluster = await startRedisCluster(t, 1);
    const [key = ''] = await keysByMaster(cluster);
    const settings = { kind: 'cluster' as const, urls: [cluster.urls[0] ?? '', cluster.urls[1] ?? ''] };
    const one = await openRedisState(t, settings);
    const other = await openRedisState(t, settings);
    const received = new Set<string>();
    for (const [name, { pubsub }] of Object.entries({ one, other }))
      pubsub.subscribe('channel', () => received.add(name));
    await one.keyValues.write(key, 'before');

    await cluster.masters[0]?.kill();
    await assertUnavailable(() => one.keyValues.write(key, 'during the outage'));
    await untilAvailable(10_000, () => one.keyValues.write(key, 'after'));
    await untilAvailable(5_000, async () => assert.equal(await other.keyValues.read(key), 'after'));
    await until(5_000, 'both instances receive a message', async () => {
      await one.pubsub.publish('channel', 'message').catch(() => {});
      return received.size === 2;
    });
    await until(5_000, 'the problem ends', () => one.problem() === undefined);
  });

  test('refuses all operations while all masters are down, and recovers afterwards', async (t) => {
    const cluster = await sharedCluster();
    const { keyValues, problem } = await openRedisState(t, settingsOf(cluster));
    await Promise.all(cluster.masters.map((master) => master.kill()));
    await assertUnavailableFor(700, () => keyValues.read('key'));
    await until(5_000, 'the problem is reported', () =>
      /Redis unavailable.*ECONNREFUSED/.test(problem() ?? ''),
    );

    await Promise.all(cluster.masters.map((master) => master.restart()));
    await untilAvailable(10_000, () => keyValues.write('key', 'value'));
  });
});
