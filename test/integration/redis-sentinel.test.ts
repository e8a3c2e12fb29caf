/** Sentinels put a replica in the place of a master: the gateway follows. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sendRedisCommand, skipWithoutRedisServer } from '../kit/redis.ts';
import { openRedisState, timesToFail, timeToRecover } from '../kit/redis-outage.ts';
import { startSentinels } from '../kit/redis-sentinels.ts';
import { until } from '../kit/within.ts';

describe('a master that sentinels watch', { skip: skipWithoutRedisServer, concurrency: 2 }, () => {
  test('dies: everything fails at once until a replica has taken over, then works on', async (t) => {
    const { urls, name, master } = await startSentinels(t);
    const state = await openRedisState(t, { kind: 'sentinels', urls: [...urls], name });
    const heard = new Set<string>();
    state.pubsub.subscribe('channel', (message) => heard.add(message));
    await state.keyValues.write('key', 'before');

    await master.kill();
    const times = await timesToFail(300, () => state.keyValues.write('key', 'meanwhile'));
    assert.ok((times.at(-1) ?? 0) < 150, `it took ${times.at(-1)} ms to say so`);
    const recovery = await timeToRecover(15_000, () => state.keyValues.write('key', 'after'));
    assert.equal(await state.keyValues.read('key'), 'after');
    await until(5_000, 'it is heard', async () => {
      await state.pubsub.publish('channel', 'message').catch(() => {});
      return heard.has('message');
    });
    await until(1_000, 'it is well again', () => state.problem() === undefined);
    t.diagnostic(`failover: written to again after ${Math.round(recovery + 300)} ms`);
  });

  // It goes on taking writes for some ten seconds, and then forgets them: nobody may write to it meanwhile.
  test('is replaced while it still serves: the new one is written to as soon as the sentinels say so', async (t) => {
    const { urls, name, master, replica } = await startSentinels(t);
    const state = await openRedisState(t, { kind: 'sentinels', urls: [...urls], name });
    const heard = new Set<string>();
    state.pubsub.subscribe('channel', (message) => heard.add(message));

    await sendRedisCommand(Number(new URL(urls[0] ?? '').port), 'SENTINEL', 'FAILOVER', name);
    await until(15_000, 'there are two masters', async () => (await roleOf(replica.port)) === 'master');
    const start = performance.now();
    await until(5_000, 'the new one is written to', async () => {
      await state.keyValues.write('key', 'after').catch(() => {});
      return (await asked(replica.port, 'GET', 'test:key')) === 'after';
    });
    const ms = Math.round(performance.now() - start);
    assert.equal(await roleOf(master.port), 'master', 'the old one has stepped down too soon for this test');
    await until(5_000, 'it is heard through the new one', async () => {
      await asked(replica.port, 'PUBLISH', 'test:channel', 'message');
      return heard.has('message');
    });
    await until(1_000, 'it is well', () => state.problem() === undefined);
    t.diagnostic(`replaced: the new master is written to ${ms} ms after it became one`);
  });
});

/** The answer of a server, or none: the sentinels end its connections when it changes its role. */
const asked = (port: number, ...command: [string, ...string[]]) =>
  sendRedisCommand(port, ...command).catch(() => undefined);

const roleOf = async (port: number) =>
  /^role:(\w+)/m.exec(String(await asked(port, 'INFO', 'replication')))?.[1];
