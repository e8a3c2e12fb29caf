/** All of Redis is lost under load: every payment is executed once, and none is refused. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { impatientState } from '../kit/gateway.ts';
import {
  initiationCounts,
  type PaymentFleet,
  paidTwice,
  startLocalPaymentFleet,
  startPayments,
} from '../kit/payment-fleet.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';

interface Loss {
  readonly begin: (redis: RedisServer) => unknown;
  readonly end: (redis: RedisServer) => unknown;
}

const losses: Readonly<Record<string, Loss>> = {
  'is killed, and comes back empty': { begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  'is frozen, and continues': { begin: (redis) => redis.freeze(), end: (redis) => redis.thaw() },
  'is flushed twice': { begin: (redis) => redis.flush(), end: (redis) => redis.flush() },
};

const phase = 150; // payments

for (const count of [1, 2])
  describe(`payments of ${count === 1 ? 'one instance' : 'two instances'} while Redis`, {
    skip: skipWithoutRedisServer || skipWithoutPostgres,
  }, () => {
    for (const [how, { begin, end }] of Object.entries(losses))
      test(`${how} are all executed once, and repeats are replayed by every instance`, async (t) => {
        const redis = await startRedis(t);
        const fleet = await startLocalPaymentFleet(t, redis.url, count, { state: impatientState });
        const load = startPayments(t, fleet);
        await load.hasSentMore(phase);
        await begin(redis);
        await load.hasSentMore(phase);
        await end(redis);
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
