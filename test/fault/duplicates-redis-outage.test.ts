/** Redis is killed or frozen: a write is refused at once and nothing is sent, unless the configuration allows it (F2, G). */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { until } from '../kit/within.ts';
import { newWrite, outcomeOf, writeNames } from '../kit/writes.ts';

/** How long a refusal may take: 50 ms are promised for each question to Redis, the rest is for the machine. */
const refusedWithinMs = 1_000;

interface Outage {
  readonly begin: (redis: RedisServer) => unknown;
  readonly end: (redis: RedisServer) => unknown;
}

const outages: Readonly<Record<string, Outage>> = {
  killed: { begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  frozen: { begin: (redis) => redis.freeze(), end: (redis) => redis.thaw() },
};

async function startLine(t: TestContext, sections: Sections = {}) {
  const redis = await startRedis(t);
  const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  const gateway = await startGateway(t, { environments, state: { redis: redis.url }, ...sections });
  const earlier = await newWrite(bank, 'initiation');
  assert.equal(outcomeOf(await call(gateway.url, earlier.call)), '201');
  return { redis, bank, gateway };
}

for (const [how, { begin, end }] of Object.entries(outages)) {
  describe(`while Redis is ${how}`, { skip: skipWithoutRedisServer, concurrency: 2 }, () => {
    test('every write is refused within a second, nothing is sent, and afterwards it is carried out once', async (t) => {
      const { redis, bank, gateway } = await startLine(t);
      const writes = await Promise.all(writeNames.map((name) => newWrite(bank, name)));
      await begin(redis);
      for (const write of [...writes, ...writes]) {
        const startMs = performance.now();
        const said = outcomeOf(await call(gateway.url, write.call));
        const tookMs = performance.now() - startMs;
        assert.equal(said, '503 STATE_UNAVAILABLE');
        assert.ok(tookMs < refusedWithinMs, `it took ${tookMs} ms`);
        assert.equal(write.timesReceived(), 0);
      }

      await end(redis);
      for (const write of writes) {
        await until(5_000, 'it is carried out', async () => {
          const said = outcomeOf(await call(gateway.url, write.call));
          assert.doesNotMatch(said, /DOUBT/);
          return said.startsWith('20');
        });
        assert.equal(write.timesReceived(), 1);
      }
    });

    test('every write is sent where the configuration allows it, and the log says so of each', async (t) => {
      const { redis, bank, gateway } = await startLine(t, { idempotency: { ifStateFails: 'allow' } });
      const writes = await Promise.all([...writeNames, ...writeNames].map((name) => newWrite(bank, name)));
      await begin(redis);
      for (const write of writes) {
        const earlier = gateway.logLines.length;
        assert.match(outcomeOf(await call(gateway.url, write.call)), /^20[12]$/);
        assert.equal(write.timesReceived(), 1);
        const said = gateway.logLines
          .slice(earlier)
          .filter((line) => /"warn".*without protection from duplicates/.test(line));
        assert.equal(said.length, 1, write.name);
      }
    });
  });
}
