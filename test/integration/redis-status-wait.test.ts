/** Waiting status reads on three instances with one Redis: one of them polls, and all learn of a change. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { type GatewayUnderTest, type Sections, startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import {
  redisStateFactory,
  sharedRedisUrl,
  skipWithoutRedis,
  skipWithoutRedisServer,
  startRedis,
} from '../kit/redis.ts';
import { statusRead, transfersPath } from '../kit/request.ts';
import { untilListening } from '../kit/status-listeners.ts';
import { openStatusStream } from '../kit/status-stream.ts';
import { type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until, within } from '../kit/within.ts';

/** Milliseconds between two polls. */
const intervalMs = 300;
const eager = { pendingTtl: `${intervalMs}ms`, pendingTtlMax: `${intervalMs}ms` };
const lazy = { pendingTtl: '10min', pendingTtlMax: '10min' };

/** A bank whose responses name the caller. */
async function startBank(t: TestContext) {
  let code = 'ACTC';
  const bank = await startStubBank(t, ({ header }: StubRequest) =>
    statusResponse(code, { generatedFor: header('authorization') }),
  );
  return {
    bank,
    change(next: string) {
      code = next;
    },
  };
}

async function startThree(t: TestContext, sections: Sections, prefix = `test-${randomUUID()}:`) {
  const { bank, change } = await startBank(t);
  const redis = await sharedRedisUrl(t);
  const createState = redisStateFactory(redis, prefix);
  const settings = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { redis, prefix },
    ...sections,
  };
  const gateways: GatewayUnderTest[] = [];
  for (let count = 0; count < 3; count++) gateways.push(await startGateway(t, settings, createState()));
  return { bank, change, gateways, redis, prefix };
}

const waiting = (user: number | string, more: Partial<Call> = {}): Call => ({
  ...statusRead,
  maxMs: 120_000,
  ...more,
  headers: [['Authorization', `Bearer ${user}`], ['Prefer', 'wait=50'], ...(more.headers ?? [])],
});

const answerOf = (reply: Reply) => [
  reply.status,
  jsonOf(reply).transactionStatus,
  jsonOf(reply).generatedFor,
];

describe('waiting status reads on three instances', { skip: skipWithoutRedis }, () => {
  test('cost as many requests to the bank as one poller, and all are answered by a change', async (t) => {
    const { bank, change, gateways } = await startThree(t, { statusCache: eager });
    const users = 3;
    const perUser = 10;
    // The newest read of each instance, with whose credentials it polls, is that of another user.
    const userOf = (instance: number, at: number) => (instance + at) % users;
    const replies = gateways.flatMap(({ url }, instance) =>
      Array.from({ length: users * perUser }, (_, at) => call(url, waiting(userOf(instance, at)))),
    );
    await untilListening(gateways, 'wait', replies.length);

    const [startedAtMs, before] = [performance.now(), bank.requests.length];
    await until(10_000, 'the bank is polled', () => bank.requests.length >= before + 6);
    const polls = bank.requests.length - before;
    const possible = (performance.now() - startedAtMs) / intervalMs + 2;
    assert.ok(polls <= possible, `${polls} polls, where one poller sends at most ${possible}`);
    change('ACSC');

    const answers = (await within(60_000, 'all answers', Promise.all(replies))).map(answerOf);
    for (const [at, answer] of answers.entries()) {
      const user = userOf(Math.floor(at / (users * perUser)), at % (users * perUser));
      assert.deepEqual(answer, [200, 'ACSC', `Bearer ${user}`]);
    }
    const rest = bank.requests.length - before - polls;
    // Each user reads once. If Redis is slow, the instances do not wait for each other's reads.
    const reads = users * gateways.length;
    const allowed = (performance.now() - startedAtMs) / intervalMs + 2 - polls + reads;
    assert.ok(rest <= allowed, `${rest} requests after the change, at most ${allowed} expected`);
  });

  test('are answered on all instances by a change that a TPP sees on one of them', async (t) => {
    const { change, gateways } = await startThree(t, { statusCache: lazy });
    const replies = gateways.map(({ url }, at) => call(url, waiting(at)));
    await untilListening(gateways, 'wait', replies.length);
    change('ACSC');

    const headers = [['Authorization', 'Bearer somebody']] as const;
    await call(gateways[0]?.url ?? '', { ...statusRead, headers });

    const answers = (await Promise.all(replies)).map(answerOf);
    assert.deepEqual(
      answers,
      [0, 1, 2].map((user) => [200, 'ACSC', `Bearer ${user}`]),
    );
  });

  test('are answered on all instances after a write, with one poll', async (t) => {
    const { change, gateways } = await startThree(t, { statusCache: lazy });
    const replies = gateways.map(({ url }, at) => call(url, waiting(at)));
    await untilListening(gateways, 'wait', replies.length);
    change('CANC');

    const path = `${transfersPath}/1234-wertiq-983`;
    await call(gateways[0]?.url ?? '', {
      method: 'DELETE',
      path,
      headers: [['Authorization', 'Bearer somebody']],
    });

    const answers = (await Promise.all(replies)).map(answerOf);
    assert.deepEqual(
      answers,
      [0, 1, 2].map((user) => [200, 'CANC', `Bearer ${user}`]),
    );
  });
});

describe('waiting status reads', { skip: skipWithoutRedisServer }, () => {
  test('are polled by another instance after the one that polled was killed', async (t) => {
    const { bank, change } = await startBank(t);
    const { url: redis } = await startRedis(t);
    const sections = {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      state: { redis },
      statusCache: eager,
    };
    const [one, other] = await Promise.all([
      startGatewayProcess(t, sections),
      startGatewayProcess(t, sections),
    ]);
    const lost = call(one.url, waiting('one'));
    lost.catch(() => {}); // its instance is killed
    await untilListening([one], 'wait', 1);
    const reply = call(other.url, waiting('other'));
    await untilListening([one, other], 'wait', 2);

    await one.stop('SIGKILL');
    await assert.rejects(lost);
    const before = bank.requests.length;
    await until(15_000, 'the bank is polled again', () => bank.requests.length > before + 1);
    change('ACSC');

    assert.deepEqual(answerOf(await reply), [200, 'ACSC', 'Bearer other']);
  });

  test('get the status that is known at their end if Redis fails, and none is polled', async (t) => {
    const { bank } = await startBank(t);
    const redis = await startRedis(t);
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      state: { postgres: await newMigratedPostgres(), redis: redis.url, timeout: '250ms' },
      statusCache: eager,
    });
    const headers = [
      ['Authorization', 'Bearer one'],
      ['Prefer', 'wait=4'],
    ] as const;
    const reply = call(gateway.url, { ...statusRead, headers }, agent);
    await untilListening([gateway], 'wait', 1);

    await redis.kill();
    await until(10_000, 'Redis is missed', () =>
      gateway.logLines.some((line) => line.includes('Redis unavailable')),
    );
    const before = bank.requests.length;

    assert.deepEqual(answerOf(await reply), [200, 'ACTC', 'Bearer one']);
    assert.ok(bank.requests.length <= before + 1, 'a poll that was on its way may still arrive');
  });

  test('that are streams continue after a Redis outage, even if Redis has lost its data', async (t) => {
    const { bank, change } = await startBank(t);
    const redis = await startRedis(t);
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      state: { postgres: await newMigratedPostgres(), redis: redis.url, timeout: '250ms' },
      statusCache: eager,
    });
    const stream = await openStatusStream(gateway.url, statusRead.path, { Authorization: 'Bearer one' });
    assert.equal((await stream.next())?.data.transactionStatus, 'ACTC');

    await redis.kill();
    await until(10_000, 'Redis is missed', () =>
      gateway.logLines.some((line) => line.includes('Redis unavailable')),
    );
    change('ACSC');
    await redis.restart();

    assert.equal((await stream.next())?.data.transactionStatus, 'ACSC');
    stream.close();
  });
});
