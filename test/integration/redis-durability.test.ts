/** What a Redis that may lose data means for the start, the readiness, new payments and `penstock check`. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createState } from '../../src/state/create-state.ts';
import { call, jsonOf } from '../kit/call.ts';
import { writeConfigFile } from '../kit/command.ts';
import { startCommandRunner } from '../kit/command-runner.ts';
import { configOf, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { freePort } from '../kit/ports.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { startSentinels } from '../kit/redis-sentinels.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const runCommand = startCommandRunner(scopeOfAllTests());

const environments = { sandbox: { baseUrl: 'https://bank.test' } };

/** A server with an append-only file and a replica. */
async function startDurableRedis(t: TestContext): Promise<RedisServer> {
  const redis = await startRedis(t, ['--appendonly', 'yes']);
  await startRedis(t, ['--replicaof', '127.0.0.1', new URL(redis.url).port]);
  await until(10_000, 'the replica is connected', async () =>
    /connected_slaves:1/.test(String(await redis.command('INFO', 'replication'))),
  );
  return redis;
}

async function readinessOf({ adminUrl }: { readonly adminUrl: string }) {
  const reply = await call(adminUrl, { method: 'GET', path: '/health/ready' });
  return { status: reply.status, reasons: String(jsonOf(reply).reasons) };
}

/** Checks a configuration about which there is no other warning. */
function runCheck(t: TestContext, sections: Sections) {
  const admin = { operators: [{ name: 'ann', tokenSha256: 'ab12'.repeat(16) }] };
  const file = writeConfigFile(t, JSON.stringify({ environments, admin, ...sections }));
  return runCommand(['check', '--config', file]);
}

describe('a Redis without a disk and without a replica', { skip: skipWithoutRedisServer }, () => {
  test('is reported at the start and by the readiness, which stays 200', async (t) => {
    const redis = await startRedis(t);
    const gateway = await startGatewayProcess(t, { environments, state: { redis: redis.url } });
    const { status, reasons } = await readinessOf(gateway);
    assert.equal(status, 200);
    assert.match(reasons, /aof_enabled:0.*connected_slaves:0/);
    const warnings = gateway.command
      .stdout()
      .split('\n')
      .filter((line) => /may lose data/.test(line));
    assert.deepEqual(
      [/aof_enabled:0/, /connected_slaves:0/].map(
        (field) => warnings.filter((line) => field.test(line)).length,
      ),
      [1, 1],
    );
  });

  test('is reported by penstock check, which succeeds', async (t) => {
    const redis = await startRedis(t);
    const result = await runCheck(t, { state: { redis: redis.url } });
    assert.equal(result.exitCode, 0);
    const [first, ...lines] = result.stdout.trimEnd().split('\n');
    assert.equal(first, 'The configuration is valid.');
    assert.match(lines[0] ?? '', /aof_enabled:0.*set appendonly to yes/);
    assert.match(lines[1] ?? '', /connected_slaves:0.*connect a replica/);
  });

  test('is refused at the start and by penstock check if state.durability is required', async (t) => {
    const redis = await startRedis(t);
    const sections = { state: { redis: redis.url, durability: 'required' } };
    const refusal = /state\.durability is required.*aof_enabled:0.*set appendonly to yes.*connected_slaves:0/;
    await assert.rejects(startGatewayProcess(t, { environments, ...sections }), refusal);
    const result = await runCheck(t, sections);
    assert.equal(result.exitCode, 78);
    assert.match(result.stderr, refusal);
  });

  test('is found on every master of a cluster, and on the master behind sentinels', async (t) => {
    const cluster = await startRedisCluster(t);
    const sentinels = await startSentinels(t, { replicaPriority: 0 });
    const kinds = [
      [{ cluster: cluster.urls }, /3 of 3 masters of the Redis Cluster: no persistence.*3 of 3 .*no replica/],
      [
        { sentinels: sentinels.urls, name: sentinels.name },
        /^Redis: (no persistence|no append-only file)[^:]*aof_enabled:0/,
      ],
    ] as const;
    for (const [redis, says] of kinds) {
      const state = createState(configOf({ environments, state: { redis } }).state, () => {});
      t.after(() => state.close());
      await state.open();
      await until(10_000, 'Redis is reachable', () => state.problem() === undefined);
      await until(10_000, 'it is reported', () => says.test(state.lossRisks().join(', ')));
    }
  });
});

describe('a Redis that keeps what is written to it', { skip: skipWithoutRedisServer }, () => {
  test('is not reported', async (t) => {
    const redis = await startDurableRedis(t);
    const result = await runCheck(t, { state: { redis: redis.url, durability: 'required' } });
    assert.equal(result.exitCode, 0);
    assert.equal(result.stdout, 'The configuration is valid.\n');
  });

  test('makes the gateway unready as soon as its append-only file is switched off, if state.durability is required', async (t) => {
    const redis = await startDurableRedis(t);
    const sections = { environments, state: { redis: redis.url, durability: 'required' } };
    const bank = await startBank(t);
    const gateway = await startGateway(t, {
      ...sections,
      environments: { sandbox: { baseUrl: bank.baseUrl } },
    });
    assert.deepEqual(await readinessOf(gateway), { status: 200, reasons: '' });

    await redis.command('CONFIG', 'SET', 'appendonly', 'no');
    await until(10_000, 'the readiness changes', async () => (await readinessOf(gateway)).status === 503);
    const { reasons } = await readinessOf(gateway);
    assert.match(reasons, /^state\.durability is required.*aof_enabled:0/);

    await redis.command('CONFIG', 'SET', 'appendonly', 'yes');
    await until(10_000, 'the readiness changes', async () => (await readinessOf(gateway)).status === 200);
  });

  test('gets no record of a new payment while it has no append-only file, if state.durability is required', async (t) => {
    const redis = await startDurableRedis(t);
    const { state: settings } = configOf({
      environments,
      state: { redis: redis.url, durability: 'required' },
    });
    const state = createState(settings, () => {});
    t.after(() => state.close());
    await state.open();
    await state.keyValues.write('epoch', 'first 1');
    const claim = (key: string) =>
      state.keyValues.writeIfAbsent(key, 'claimed', 60_000, { key: 'epoch', epoch: 'first', sequence: 1 });
    assert.equal(await claim('one'), true);

    await redis.command('CONFIG', 'SET', 'appendonly', 'no');
    await until(10_000, 'the problem is noticed', () => state.problem() !== undefined);
    await assert.rejects(claim('other'), { code: 'STATE_UNAVAILABLE' });
    assert.equal(await state.keyValues.read('other'), undefined);
    assert.equal(await state.keyValues.read('one'), 'claimed');

    await redis.command('CONFIG', 'SET', 'appendonly', 'yes');
    await until(10_000, 'the problem ends', () => state.problem() === undefined);
    assert.equal(await claim('other'), true);
  });
});

test('penstock check reports a Redis that cannot be reached, and succeeds', async (t) => {
  const result = await runCheck(t, { state: { redis: `redis://127.0.0.1:${await freePort()}` } });
  assert.equal(result.exitCode, 0);
  assert.match(
    result.stdout,
    /^The configuration is valid\.\nNot checked: Redis unavailable \(.*ECONNREFUSED/,
  );
});
