/** All of Redis is lost under load, or fails over: every payment is executed once, and none is refused. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { impatientState } from '../kit/gateway.ts';
import {
  initiationCounts,
  type PaymentFleet,
  paidTwice,
  startLocalPaymentFleet,
  startPayments,
} from '../kit/payment-fleet.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { type RedisServer, sendRedisCommand, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { startSentinels } from '../kit/redis-sentinels.ts';
import { until } from '../kit/within.ts';

interface Loss {
  /** `state.redis` of the configuration. */
  readonly redis: string | object;
  readonly begin: () => unknown;
  readonly end: () => unknown;
}

const ofServer =
  (lossOf: (redis: RedisServer) => Omit<Loss, 'redis'>) =>
  async (t: TestContext): Promise<Loss> => {
    const redis = await startRedis(t);
    return { redis: redis.url, ...lossOf(redis) };
  };

const losses: Readonly<Record<string, (t: TestContext) => Promise<Loss>>> = {
  'is killed, and comes back empty': ofServer(({ kill, restart }) => ({ begin: kill, end: restart })),
  'is frozen, and continues': ofServer(({ freeze, thaw }) => ({ begin: freeze, end: thaw })),
  'is flushed twice': ofServer(({ flush }) => ({ begin: flush, end: flush })),
  async 'loses a master of its cluster, whose replica takes over'(t) {
    const { urls, masters, replicas } = await startRedisCluster(t, 1);
    return {
      redis: { cluster: urls },
      begin: () => masters[0]?.kill(),
      end: () => untilMaster(replicas[0]?.port ?? 0),
    };
  },
  async 'loses the master of its sentinels, whose replica takes over'(t) {
    const { urls, name, master, replica } = await startSentinels(t);
    return { redis: { sentinels: urls, name }, begin: master.kill, end: () => untilMaster(replica.port) };
  },
};

const untilMaster = (port: number): Promise<void> =>
  until(20_000, 'the replica has taken over', async () => {
    const replication = await sendRedisCommand(port, 'INFO', 'replication').catch(() => '');
    return /^role:master/m.test(String(replication));
  });

const phase = 60; // payments

for (const count of [1, 2])
  describe(`payments of ${count === 1 ? 'one instance' : 'two instances'} while Redis`, {
    skip: skipWithoutRedisServer || skipWithoutPostgres,
  }, () => {
    for (const [how, start] of Object.entries(losses))
      test(`${how} are all executed once, and repeats are replayed by every instance`, async (t) => {
        const { redis, begin, end } = await start(t);
        const fleet = await startLocalPaymentFleet(t, redis, count, { state: impatientState });
        const load = startPayments(t, fleet);
        await load.hasSentMore(phase);
        await begin();
        await load.hasSentMore(phase);
        await end();
        await load.hasSentMore(phase);
        await load.stop();
        const sent = [...fleet.answers];
        assert.deepEqual(outcomesOf(sent), new Set(['201']));
        assert.deepEqual(paidTwice(fleet.bank), []);
        const executed = initiationCounts(fleet.bank);
        for (const { requestId } of sent) assert.equal(executed.get(requestId), 1);

        const received = executed.size;
        const repeats = fleet.instances.flatMap((_, instance) =>
          sent.map((one) => fleet.send(one, instance)),
        );
        assert.deepEqual(outcomesOf(await Promise.all(repeats)), new Set(['201 replayed']));
        assert.equal(initiationCounts(fleet.bank).size, received);
        assert.deepEqual(paidTwice(fleet.bank), []);
      });
  });

const outcomesOf = (answers: PaymentFleet['answers']) => new Set(answers.map(({ outcome }) => outcome));
