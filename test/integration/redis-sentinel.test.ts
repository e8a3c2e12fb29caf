/** The gateway follows a failover that sentinels carry out. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sendRedisCommand, skipWithoutRedisServer } from '../kit/redis.ts';
import { assertUnavailableFor, openRedisState, untilAvailable } from '../kit/redis-outage.ts';
import { startSentinels } from '../kit/redis-sentinels.ts';
import { until } from '../kit/within.ts';

describe('the Redis state behind sentinels', { skip: skipWithoutRedisServer, concurrency: 2 }, () => {
  test('refuses operations after the master is killed, until a replica takes over', async (t) => {
    const { urls, name, master } = await startSentinels(t);
    const state = await openRedisState(t, { kind: 'sentinels', urls: [...urls], name });
    const received = new Set<string>();
    state.pubsub.subscribe('channel', (message) => received.add(message));
    await state.keyValues.write('key', 'before');

    await master.kill();
    await assertUnavailableFor(300, () => state.keyValues.write('key', 'during the outage'));
    await untilAvailable(15_000, () => state.keyValues.write('key', 'after'));
    assert.equal(await state.keyValues.read('key'), 'after');
    await until(5_000, 'a message is received', async () => {
      await state.pubsub.publish('channel', 'message').catch(() => {});
      return received.has('message');
    });
    await until(5_000, 'the problem ends', () => state.problem() === undefined);
  });

  // The former master accepts writes for some ten seconds, and then discards them.
  test('leaves a former master that still accepts writes as soon as the sentinels report the new one', async (t) => {
    const { urls, name, master, replica } = await startSentinels(t);
    const state = await openRedisState(t, { kind: 'sentinels', urls: [...urls], name });
    const received = new Set<string>();
    state.pubsub.subscribe('channel', (message) => received.add(message));

    await sendRedisCommand(Number(new URL(urls[0] ?? '').port), 'SENTINEL', 'FAILOVER', name);
    await until(15_000, 'there are two masters', async () => (await roleOf(replica.port)) === 'master');
    await until(5_000, 'the new master receives writes', async () => {
      await state.keyValues.write('key', 'after').catch(() => {});
      return (await command(replica.port, 'GET', 'test:key')) === 'after';
    });
    assert.equal(
      await roleOf(master.port),
      'master',
      'the former master stepped down too early for this test',
    );
    await until(5_000, 'a message of the new master is received', async () => {
      await command(replica.port, 'PUBLISH', 'test:channel', 'message');
      return received.has('message');
    });
    await until(5_000, 'the problem ends', () => state.problem() === undefined);
  });
});

/** The answer of a server, or `undefined`: sentinels close its connections when its role changes. */
const command = (port: number, ...words: [string, ...string[]]) =>
  sendRedisCommand(port, ...words).catch(() => undefined);

const roleOf = async (port: number) =>
  /^role:(\w+)/m.exec(String(await command(port, 'INFO', 'replication')))?.[1];
