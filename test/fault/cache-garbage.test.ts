/** Somebody else has written to Redis where the cache keeps its values: statuses still come, and it mends itself. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

/** What may stand under a key instead of what belongs there. */
const garbage: Readonly<Record<string, (redis: RedisServer, key: string) => Promise<unknown>>> = {
  'a list': async (redis, key) => {
    await redis.command('DEL', key);
    await redis.command('LPUSH', key, 'element');
  },
  'no JSON': (redis, key) => redis.command('SET', key, '{"v":1,'),
  'a later version': (redis, key) => redis.command('SET', key, '{"v":2,"standing":"ACCC"}'),
  'another shape': (redis, key) => redis.command('SET', key, '{"v":1,"g":"x","a":0,"e":{"x":null}}'),
  nothing: (redis, key) => redis.command('SET', key, ''),
  'bytes that are no text': (redis, key) => redis.command('SETBIT', key, '0', '1'),
  'bytes that are no text within ours': (redis, key) => redis.command('SETBIT', key, '96', '1'),
  'two megabytes': (redis, key) => redis.command('SETRANGE', key, '2000000', 'x'),
};

const isHit = ({ header }: Reply) => header('Cache-Status')?.startsWith('penstock; hit;') === true;

/** A gateway that knows one payment, and the keys of all that its cache keeps. */
async function startKnowing(t: TestContext) {
  const redis = await startRedis(t);
  let asked = 0;
  const bank = await startStubBank(t, () => statusResponse('ACCC', { n: asked++ }));
  const sandbox = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
  const gateway = await startGateway(t, {
    environments: { sandbox },
    state: { redis: redis.url, prefix: 'p:' },
  });
  const read = () => call(gateway.url, statusRead);
  await read();
  const keys = (await redis.command('KEYS', 'p:status:*')) as readonly string[]; // as Redis documents it
  return { redis, bank, read, keys };
}

describe('where the cache keeps its values', { skip: skipWithoutRedisServer }, () => {
  for (const [what, write] of Object.entries(garbage)) {
    test(`${what} does no harm: each status comes, and is cached again within two reads`, async (t) => {
      const { redis, read, keys, bank } = await startKnowing(t);
      const document = keys.find((key) => /^p:status:[\w-]{43}$/.test(key)) ?? assert.fail();
      await write(redis, document);
      for (let turn = 0; turn < 3; turn++) {
        const reply = await read();
        assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'ACCC']);
      }
      assert.match((await read()).header('Cache-Status') ?? '', /^penstock; hit;/);
      assert.ok(bank.requests.length <= 3, `${bank.requests.length} requests at the bank`);
    });

    test(`${what} in place of the secret does no harm: each status comes`, async (t) => {
      const { redis, read } = await startKnowing(t);
      await write(redis, 'p:status:secret');
      for (let turn = 0; turn < 3; turn++) assert.equal((await read()).status, 200);
      if (what === 'a list') return; // is left to whoever empties the cache
      const secret = () => redis.command('GET', 'p:status:secret');
      await until(3_000, 'another is taken', async () => /^[\w+/]{43}=$/.test(String(await secret())));
      await read();
      await until(3_000, 'it is of use', async () => isHit(await read()));
    });
  }
});
