/** A cluster of Redis loses a master: only its keys are out of reach, and a replica that takes over is found. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lifeOfAllTests } from '../kit/life.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { type RedisCluster, startRedisCluster } from '../kit/redis-cluster.ts';
import { openRedisState, timesToFail, timeToFail, timeToRecover } from '../kit/redis-outage.ts';
import { until } from '../kit/within.ts';

const failureMs = 150;

/** A key on each master, in their order. */
async function keysByMaster({ ownerOf }: RedisCluster): Promise<readonly string[]> {
  const keys = new Map<number, string>();
  for (let index = 0; keys.size < 3; index++) keys.set(await ownerOf(`test:key-${index}`), `key-${index}`);
  return [0, 1, 2].map((master) => keys.get(master) ?? '');
}

const nearlyAll = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.95)] ?? 0;

describe('a cluster of Redis', { skip: skipWithoutRedisServer }, () => {
  const life = lifeOfAllTests();
  let started: Promise<RedisCluster> | undefined;
  /** One for the tests that leave it as they found it: it takes two seconds until it serves. */
  const sharedCluster = () => {
    started ??= startRedisCluster(life);
    return started;
  };

  test('that lost a master without a replica fails at once for its keys, and serves the others', async (t) => {
    const cluster = await sharedCluster();
    const [lost = '', ...others] = await keysByMaster(cluster);
    const { keyValues, problem, problems } = await openRedisState(t, {
      kind: 'cluster',
      urls: [...cluster.urls],
    });
    for (const key of [lost, ...others]) await keyValues.write(key, 'before');

    await cluster.masters[0]?.kill();
    const times = await timesToFail(1_500, async () => {
      for (const key of others) assert.equal(await keyValues.read(key), 'before');
      await keyValues.write(lost, 'meanwhile');
    });
    assert.ok(nearlyAll(times) < failureMs, `it took ${nearlyAll(times)} ms to say so`);
    assert.match(problem() ?? '', /cannot be reached|does not serve all keys/);
    assert.equal(problems.length, 1);

    await cluster.masters[0]?.restart();
    const recovery = await timeToRecover(5_000, () => keyValues.read(lost));
    assert.equal(await keyValues.read(lost), undefined, 'what was written meanwhile is never done');
    await until(5_000, 'it is well again', () => problem() === undefined);
    t.diagnostic(`master back: used ${Math.round(recovery)} ms after its return`);
  });

  test('of which a master is frozen fails within 50 ms for its keys, and serves the others', async (t) => {
    const cluster = await sharedCluster();
    const [frozen = '', ...others] = await keysByMaster(cluster);
    const { keyValues, problem } = await openRedisState(t, { kind: 'cluster', urls: [...cluster.urls] });
    for (const key of [frozen, ...others]) await keyValues.write(key, 'before');

    cluster.masters[0]?.freeze();
    const times = await timesToFail(1_500, () => keyValues.read(frozen));
    assert.ok(nearlyAll(times) < failureMs, `it took ${nearlyAll(times)} ms to say so`);
    for (const key of others) assert.equal(await keyValues.read(key), 'before');
    assert.match(problem() ?? '', /cannot be reached/);

    cluster.masters[0]?.thaw();
    const recovery = await timeToRecover(5_000, () => keyValues.read(frozen));
    assert.equal(await keyValues.read(frozen), 'before');
    t.diagnostic(`frozen master: used ${Math.round(recovery)} ms after it went on`);
  });

  test('whose replica takes over is written to again within seconds, and its instances hear each other', async (t) => {
    const cluster = await startRedisCluster(t, 1);
    const [key = ''] = await keysByMaster(cluster);
    const settings = { kind: 'cluster' as const, urls: [cluster.urls[0] ?? '', cluster.urls[1] ?? ''] };
    const [one, other] = [await openRedisState(t, settings), await openRedisState(t, settings)];
    const heard = new Set<string>();
    for (const { pubsub } of [one, other]) pubsub.subscribe('channel', (message) => heard.add(message));
    await one.keyValues.write(key, 'before');

    await cluster.masters[0]?.kill();
    await timeToFail(() => one.keyValues.write(key, 'meanwhile'));
    const recovery = await timeToRecover(10_000, () => one.keyValues.write(key, 'after'));
    await timeToRecover(2_000, async () => assert.equal(await other.keyValues.read(key), 'after'));
    await until(5_000, 'it is heard', async () => {
      await one.pubsub.publish('channel', 'message').catch(() => {});
      return heard.has('message');
    });
    await until(5_000, 'it is well again', () => one.problem() === undefined);
    t.diagnostic(
      `failover: written to again after ${Math.round(recovery)} ms, of which the cluster waits 1000`,
    );
  });

  test('of which no node can be reached is an outage like any other', async (t) => {
    const cluster = await sharedCluster();
    const { keyValues, problem } = await openRedisState(t, { kind: 'cluster', urls: [...cluster.urls] });
    await Promise.all(cluster.masters.map((master) => master.kill()));
    const times = await timesToFail(700, () => keyValues.read('key'));
    assert.ok(nearlyAll(times) < failureMs, `it took ${nearlyAll(times)} ms to say so`);
    await until(1_000, 'it says so', () => /cannot be reached.*ECONNREFUSED/.test(problem() ?? ''));

    await Promise.all(cluster.masters.map((master) => master.restart()));
    const recovery = await timeToRecover(10_000, () => keyValues.write('key', 'value'));
    t.diagnostic(`whole cluster back: used ${Math.round(recovery)} ms after its return`);
  });
});
