/** Redis is killed or frozen: every write is refused and nothing is sent, unless the configuration allows it (F2, G). */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { impatientState, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { until, within } from '../kit/within.ts';
import { newWrite, outcomeOf, withUpdates, writeNames } from '../kit/writes.ts';

/** Much shorter than the deadline of a write: the gateway refuses without waiting for Redis to recover. */
const maxRefusalMs = 5_000;

interface Outage {
  readonly begin: (redis: RedisServer) => unknown;
  readonly end: (redis: RedisServer) => unknown;
}

const outages: Readonly<Record<string, Outage>> = {
  killed: { begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  frozen: { begin: (redis) => redis.freeze(), end: (redis) => redis.thaw() },
};

/** Starts everything, and makes sure that a write succeeds. */
async function startGatewayOnRedis(t: TestContext, sections: Sections = {}) {
  const redis = await startRedis(t);
  const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  const gateway = await startGateway(t, {
    environments,
    ...withUpdates,
    state: { redis: redis.url, ...impatientState },
    ...sections,
  });
  const write = await newWrite(bank, 'initiation');
  assert.equal(outcomeOf(await call(gateway.url, write.call)), '201');
  return { redis, bank, gateway };
}

for (const [how, { begin, end }] of Object.entries(outages)) {
  describe(`a write while Redis is ${how}`, { skip: skipWithoutRedisServer, concurrency: 2 }, () => {
    test('is refused without being sent, and a repeat after the outage is sent once', async (t) => {
      const { redis, bank, gateway } = await startGatewayOnRedis(t);
      const writes = await Promise.all(writeNames.map((name) => newWrite(bank, name)));
      await begin(redis);
      for (const write of [...writes, ...writes]) {
        const reply = await within(maxRefusalMs, 'the refusal', call(gateway.url, write.call));
        assert.equal(outcomeOf(reply), '503 STATE_UNAVAILABLE');
        assert.equal(write.timesReceived(), 0);
      }

      await end(redis);
      for (const write of writes) {
        let last = '';
        await until(
          5_000,
          () => `the write succeeds; its last answer: ${last}`,
          async () => {
            const reply = await call(gateway.url, write.call);
            const outcome = outcomeOf(reply);
            last = `${outcome} ${reply.text}`;
            assert.doesNotMatch(outcome, /DOUBT/);
            return outcome.startsWith('20');
          },
        );
        assert.equal(write.timesReceived(), 1);
      }
    });

    test('is sent if ifStateFails is allow, and every write is logged', async (t) => {
      const { redis, bank, gateway } = await startGatewayOnRedis(t, {
        idempotency: { ifStateFails: 'allow' },
      });
      const writes = await Promise.all([...writeNames, ...writeNames].map((name) => newWrite(bank, name)));
      await begin(redis);
      for (const write of writes) {
        const linesBefore = gateway.logLines.length;
        assert.match(outcomeOf(await call(gateway.url, write.call)), /^20[012]$/);
        assert.equal(write.timesReceived(), 1);
        const warnings = gateway.logLines
          .slice(linesBefore)
          .filter((line) => /"warn".*without duplicate protection/.test(line));
        assert.equal(warnings.length, 1, write.name);
      }
    });
  });
}
