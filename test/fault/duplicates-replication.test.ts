/** The replicas of Redis do not follow their master: payments are refused unsent, because a failover would lose their record. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import {
  allowReplication,
  cutReplication,
  type ReplicatedRedis,
  startReplicatedRedis,
} from '../kit/redis-replication.ts';
import { until } from '../kit/within.ts';
import { newWrite, outcomeOf, withUpdates, writeNames } from '../kit/writes.ts';

interface Interruption {
  readonly begin: (redis: ReplicatedRedis) => unknown;
  readonly end: (redis: ReplicatedRedis) => unknown;
  /** What readiness says meanwhile. */
  readonly warning: RegExp;
}

const interruptions: Readonly<Record<string, Interruption>> = {
  frozen: {
    begin: ({ replicas }) => replicas[0]?.freeze(),
    end: ({ replicas }) => replicas[0]?.thaw(),
    warning: /only 0 of 1 Redis replicas confirmed it within \d+ ms/,
  },
  'cut off': {
    begin: ({ master }) => cutReplication(master),
    end: ({ master }) => allowReplication(master),
    warning: /1 Redis replicas must confirm them, but only 0 are connected/,
  },
};

async function startGateways(t: TestContext) {
  const redis = await startReplicatedRedis(t);
  const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    ...withUpdates,
    state: { redis: redis.master.url },
  };
  const gateways = [await startGateway(t, sections), await startGateway(t, sections)] as const;
  for (const gateway of gateways)
    await until(5_000, 'a payment succeeds', async () =>
      outcomeOf(await call(gateway.url, (await newWrite(bank, 'initiation')).call)).startsWith('201'),
    );
  return { redis, bank, gateways };
}

const readinessOf = async ({ adminUrl }: GatewayUnderTest) => {
  const { status, text } = await call(adminUrl, { method: 'GET', path: '/health/ready' });
  return { status, text };
};

for (const [how, { begin, end, warning }] of Object.entries(interruptions)) {
  describe(`writes while the replica of Redis is ${how}`, { skip: skipWithoutRedisServer }, () => {
    test('are refused and not in doubt, the bank receives nothing, and repeats succeed afterwards', async (t) => {
      const { redis, bank, gateways } = await startGateways(t);
      const [gateway] = gateways;
      const writes = await Promise.all([...writeNames, ...writeNames].map((name) => newWrite(bank, name)));
      await begin(redis);
      for (const each of gateways) {
        const outcomes = await Promise.all(
          writes.map(async (write) => outcomeOf(await call(each.url, write.call))),
        );
        assert.deepEqual([...new Set(outcomes)], ['503 STATE_UNAVAILABLE']);
      }
      for (const write of writes) assert.equal(write.timesReceived(), 0);
      await until(5_000, 'readiness names the reason', async () => {
        await call(gateway.url, (await newWrite(bank, 'initiation')).call); // the reason is that of the last payment
        return warning.test((await readinessOf(gateway)).text);
      });
      assert.equal((await readinessOf(gateway)).status, 200);
      await until(5_000, 'the log names the reason', () =>
        gateway.logLines.some((line) => warning.test(line)),
      );
      assert.deepEqual(await readAdminApi(gateway, '/api/in-doubt'), []);
      const { text: metrics } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
      assert.match(metrics, /^penstock_unconfirmed_marks_total [1-9]/m);

      await end(redis);
      for (const write of writes) {
        await until(10_000, 'the write succeeds', async () => {
          const outcome = outcomeOf(await call(gateway.url, write.call));
          assert.doesNotMatch(outcome, /DOUBT/);
          return outcome.startsWith('20');
        });
        assert.equal(write.timesReceived(), 1);
      }
      await until(
        10_000,
        'readiness names no reason',
        async () => !warning.test((await readinessOf(gateway)).text),
      );
      assert.deepEqual(await readAdminApi(gateway, '/api/in-doubt'), []);
    });
  });
}
