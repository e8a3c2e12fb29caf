/**
 * PostgreSQL cannot be reached, is frozen, killed, or loses a connection during a statement: a write is refused without being sent, or its
 * outcome is kept, and the gateway goes on by itself (F2, G).
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { type ProxiedPostgres, startProxiedPostgres } from '../kit/postgres-proxy.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until, within } from '../kit/within.ts';
import { newWrite, outcomeOf, type Write, withUpdates, writeNames } from '../kit/writes.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));
const skip = skipWithoutPostgres || skipWithoutRedis;

/** Shorter than the deadline of a write: the gateway refuses without waiting until the database answers again. */
const maxRefusalMs = 10_000;
/** Longer than an instance lease, and a busy machine. */
const maxRecoveryMs = 30_000;

interface Outage {
  readonly begin: (postgres: ProxiedPostgres) => unknown;
  readonly end: (postgres: ProxiedPostgres) => unknown;
}

const outages: Readonly<Record<string, Outage>> = {
  'cannot be reached': { begin: ({ proxy }) => proxy.refuse(), end: ({ proxy }) => proxy.accept() },
  'does not answer': { begin: ({ proxy }) => proxy.freeze(), end: ({ proxy }) => proxy.resume() },
  'is killed': { begin: ({ server }) => server.kill(), end: ({ server }) => server.restart() },
};

/** A gateway that has executed a write. */
async function start(t: TestContext) {
  const postgres = await startProxiedPostgres(t);
  const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
  const gateway = await startGateway(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    ...withUpdates,
    state: { postgres: postgres.url, redis: await redis(), prefix: `test-${randomUUID()}:` },
  });
  const send = async (write: Write) => outcomeOf(await call(gateway.url, write.call));
  assert.equal(await send(await newWrite(bank, 'initiation')), '201');
  const isReady = async () => (await fetch(`${gateway.adminUrl}/health/ready`)).status === 200;
  return { postgres, bank, gateway, send, isReady };
}

/** Repeats a write until its outcome is final. */
async function finalOutcome(send: (write: Write) => Promise<string>, write: Write): Promise<string> {
  let last = '';
  await until(
    maxRecoveryMs,
    () => `${write.name} has a final outcome; the last one: ${last}`,
    async () => {
      last = await send(write);
      return !/STATE_UNAVAILABLE|IN_FLIGHT|OUTCOME_UNKNOWN/.test(last);
    },
  );
  return last;
}

describe('a write while PostgreSQL', { skip, concurrency: 2 }, () => {
  for (const [how, { begin, end }] of Object.entries(outages))
    test(`${how} is refused without being sent, and a repeat after the outage is sent once`, async (t) => {
      const { postgres, bank, send, isReady } = await start(t);
      const writes = await Promise.all(writeNames.map((name) => newWrite(bank, name)));
      await begin(postgres);
      const attempts = [...writes, ...writes];
      const outcomes = await Promise.all(
        attempts.map((write) => within(maxRefusalMs, 'the refusal', send(write))),
      );
      assert.deepEqual(new Set(outcomes), new Set(['503 STATE_UNAVAILABLE']));
      for (const write of writes) assert.equal(write.timesReceived(), 0);
      await until(maxRecoveryMs, 'the instance is not ready', async () => !(await isReady()));

      await end(postgres);
      await until(maxRecoveryMs, 'the instance is ready again', isReady);
      for (const write of writes) {
        assert.match(await finalOutcome(send, write), /^20\d$/);
        assert.equal(write.timesReceived(), 1);
        assert.match(await send(write), /^20\d replayed$/);
        assert.equal(write.timesReceived(), 1);
      }
    });
});

/** The statements of a write, by what is in their texts. */
const statements = {
  claim: /INSERT INTO ledger/,
  mark: /SET step = 'sending'/,
  'record of the answer': /INSERT INTO payment/,
} as const;

describe('a write whose connection to PostgreSQL is cut', {
  skip: skipWithoutPostgres,
  concurrency: 2,
}, () => {
  for (const [name, sent] of Object.entries(statements))
    for (const when of ['before', 'after'] as const)
      test(`${when} the ${name} is sent at most once, and its outcome is known after a repeat`, async (t) => {
        const { postgres, bank, gateway, send } = await start(t);
        const writes = await Promise.all(writeNames.map((each) => newWrite(bank, each)));
        for (const write of writes) {
          const { cuts, end } = postgres.proxy.cutAt(when, sent);
          const first = send(write);
          await until(maxRecoveryMs, 'a connection is cut', () => cuts() > 0);
          end();
          assert.match(
            await within(maxRefusalMs, 'an answer', first),
            /^20\d|^503 STATE_UNAVAILABLE|^504 OUTCOME_UNKNOWN/,
          );
          assert.match(await finalOutcome(send, write), /^20\d/, `${write.name}`);
          assert.equal(write.timesReceived(), 1, write.name);
        }
        assert.equal((await callAdminApi(gateway, 'GET', '/api/in-doubt')).text, '[]');
      });
});
