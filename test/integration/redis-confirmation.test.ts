/** Writes that must survive a failover of Redis succeed only when replicas have them. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { RedisSettings, StateSettings } from '../../src/config/schema.ts';
import { type State, UnconfirmedError } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { sendRedisCommand, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { untilAvailable } from '../kit/redis-outage.ts';
import {
  allowReplication,
  cutReplication,
  startReplicatedRedis,
  untilReplicasAre,
} from '../kit/redis-replication.ts';
import { startSentinels } from '../kit/redis-sentinels.ts';
import { until } from '../kit/within.ts';

type Confirm = StateSettings['confirm'];

/** As in production, except that a command may take longer because the machine that runs the tests may be busy. */
async function openState(
  t: TestContext,
  settings: RedisSettings,
  confirm: Confirm = { replicas: 'all', timeout: 250 },
): Promise<State> {
  const state = createRedisState(settings, 'test:', () => {}, 500, confirm);
  t.after(() => state.close());
  await state.open();
  await until(5_000, 'Redis is reachable', () => state.problem() === undefined);
  return state;
}

const openSingle = (t: TestContext, url: string, confirm?: Confirm) =>
  openState(t, { kind: 'single', url }, confirm);

/** Sets a value that must survive a failover. */
async function mark({ keyValues }: State, key: string): Promise<void> {
  await keyValues.write(key, 'claimed');
  assert.equal(
    await keyValues.replace(key, 'claimed', 'sending', undefined, { confirmedBy: 'replicas' }),
    true,
  );
}

const assertUnconfirmed = (operation: Promise<unknown>) =>
  assert.rejects(
    operation,
    (error) => error instanceof UnconfirmedError && error.code === 'STATE_UNAVAILABLE',
  );

/** Leaves a busy machine time. */
const patient: Confirm = { replicas: 'all', timeout: 800 };

describe('a write that replicas must confirm', { skip: skipWithoutRedisServer, concurrency: 2 }, () => {
  test('fails while a replica is frozen, and succeeds when it continues', async (t) => {
    const { master, replicas } = await startReplicatedRedis(t);
    const state = await openSingle(t, master.url, patient);
    await mark(state, 'before');

    replicas[0]?.freeze();
    await assertUnconfirmed(mark(state, 'key'));
    await assertUnconfirmed(state.sets.add('set', 'member', 'replicas'));
    await state.keyValues.write('key', 'other writes succeed');

    replicas[0]?.thaw();
    await untilAvailable(5_000, () => mark(state, 'key'));
    await untilAvailable(5_000, () => state.sets.add('set', 'member', 'replicas'));
  });

  test('fails while one of the replicas that were connected is gone', async (t) => {
    const { master, replicas } = await startReplicatedRedis(t, 2);
    const state = await openSingle(t, master.url);
    await replicas[1]?.kill();
    await untilReplicasAre(master, 1);
    await assertUnconfirmed(mark(state, 'key'));
    const other = await openSingle(t, master.url, { replicas: 1, timeout: 800 });
    await mark(other, 'key');
  });

  test('fails while the replication is cut, and succeeds afterwards', async (t) => {
    const { master } = await startReplicatedRedis(t);
    const state = await openSingle(t, master.url);
    await cutReplication(master);
    await assertUnconfirmed(mark(state, 'key'));
    await allowReplication(master);
    await untilAvailable(10_000, () => mark(state, 'key'));
  });

  test('fails if fewer replicas than configured were ever connected', async (t) => {
    const { master } = await startReplicatedRedis(t);
    const state = await openSingle(t, master.url, { replicas: 2, timeout: 50 });
    await assertUnconfirmed(mark(state, 'key'));
  });

  test('is confirmed only after its script was executed, if Redis did not know the script', async (t) => {
    const { master, replicas } = await startReplicatedRedis(t);
    const state = await openSingle(t, master.url);
    await mark(state, 'before');
    await state.keyValues.write('key', 'claimed');

    replicas[0]?.freeze();
    await master.command('SCRIPT', 'FLUSH');
    const write = state.keyValues.replace('key', 'claimed', 'sending', undefined, {
      confirmedBy: 'replicas',
    });
    await assertUnconfirmed(write);
    assert.equal(await state.keyValues.read('key'), 'sending', 'the master executes it');
  });

  test('shares one WAIT with the writes of the same tick', async (t) => {
    const { master } = await startReplicatedRedis(t);
    const state = await openSingle(t, master.url, patient);
    await mark(state, 'before');
    await master.command('CONFIG', 'RESETSTAT');
    const keys = Array.from({ length: 60 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => state.sets.add(key, 'member', 'replicas')));
    const report = String(await master.command('INFO', 'commandstats'));
    assert.match(report, /^cmdstat_wait:calls=1,/m);
  });

  test('uses no additional connection if there is no replica, or if state.confirm.replicas is 0', async (t) => {
    const alone = await startRedis(t);
    const { master } = await startReplicatedRedis(t);
    for (const [server, confirm] of [
      [alone, patient],
      [master, { replicas: 0, timeout: 800 }],
    ] as const) {
      const state = await openSingle(t, server.url, confirm);
      await mark(state, 'key');
      await state.sets.add('set', 'member', 'replicas');
      const clients = String(await server.command('CLIENT', 'LIST', 'TYPE', 'normal'));
      assert.equal(clients.match(/^id=/gm)?.length, 2, 'the state and this test');
      assert.doesNotMatch(String(await server.command('INFO', 'commandstats')), /cmdstat_wait/);
    }
  });

  test('is on the new master after a failover if it was confirmed, and has failed otherwise', async (t) => {
    const { urls, name, master, replica } = await startSentinels(t);
    await untilReplicasAre(master, 1);
    const state = await openState(t, { kind: 'sentinels', urls: [...urls], name }, patient);
    await mark(state, 'confirmed');
    await cutReplication(master);
    await assertUnconfirmed(mark(state, 'lost'));

    await master.kill();
    await untilAvailable(20_000, () => mark(state, 'on the new master'));
    assert.match(String(await sendRedisCommand(replica.port, 'INFO', 'replication')), /^role:master/m);
    assert.equal(await state.keyValues.read('confirmed'), 'sending');
    assert.equal(await state.keyValues.read('lost'), undefined);
  });

  test('is confirmed by the replicas of the master that stores its key, in a cluster', async (t) => {
    const { urls, ownerOf, masters, replicas } = await startRedisCluster(t, 1);
    await untilReplicasAre(masters[0] ?? { port: 0 }, 1);
    const state = await openState(t, { kind: 'cluster', urls: [...urls] }, patient);
    const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => mark(state, key)));

    replicas[0]?.freeze();
    for (const key of keys.slice(0, 9)) {
      if ((await ownerOf(`test:${key}`)) === 0) await assertUnconfirmed(mark(state, key));
      else await mark(state, key);
    }
  });

  test('follows a slot of a cluster to another master', async (t) => {
    const { urls, ownerOf, masters } = await startRedisCluster(t, 1);
    await untilReplicasAre(masters[0] ?? { port: 0 }, 1);
    const state = await openState(t, { kind: 'cluster', urls: [...urls] }, patient);
    const key = await keyOn(0, ownerOf);
    await mark(state, key);
    const [from, to] = masters.map(({ port }) => port);
    const slot = String(await sendRedisCommand(from ?? 0, 'CLUSTER', 'KEYSLOT', `test:${key}`));
    const ids = await Promise.all(masters.map(({ port }) => sendRedisCommand(port, 'CLUSTER', 'MYID')));
    await sendRedisCommand(to ?? 0, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(ids[0]));
    await sendRedisCommand(from ?? 0, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(ids[1]));
    await sendRedisCommand(from ?? 0, 'MIGRATE', '127.0.0.1', String(to), `test:${key}`, '0', '5000');
    await mark(state, key); // the first master answers ASK
    for (const port of [to, from])
      await sendRedisCommand(port ?? 0, 'CLUSTER', 'SETSLOT', slot, 'NODE', String(ids[1]));
    await mark(state, key);
    assert.equal(await sendRedisCommand(to ?? 0, 'GET', `test:${key}`), 'sending');
  });
});

async function keyOn(master: number, ownerOf: (key: string) => Promise<number>): Promise<string> {
  for (let index = 0; ; index++) if ((await ownerOf(`test:key-${index}`)) === master) return `key-${index}`;
}
