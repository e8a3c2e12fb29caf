/** Invalid values of the cache in Redis: status reads still succeed, and the cache replaces the values. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

/** Invalid values that are written under a key of the cache. */
const garbage: Readonly<Record<string, (redis: RedisServer, key: string) => Promise<unknown>>> = {
  'a list': async (redis, key) => {
    await redis.command('DEL', key);
    await redis.command('LPUSH', key, 'element');
  },
  'truncated JSON': (redis, key) => redis.command('SET', key, '{"v":1,'),
  'a later version': (redis, key) => redis.command('SET', key, '{"v":2,"standing":"ACCC"}'),
  'another shape': (redis, key) => redis.command('SET', key, '{"v":1,"g":"x","a":0,"e":{"x":null}}'),
  'an empty value': (redis, key) => redis.command('SET', key, ''),
  'bytes that are not text': (redis, key) => redis.command('SETBIT', key, '0', '1'),
  'a valid value with bytes that are not text': (redis, key) => redis.command('SETBIT', key, '96', '1'),
  'two megabytes': (redis, key) => redis.command('SETRANGE', key, '2000000', 'x'),
};

const isHit = ({ header }: Reply) => header('Cache-Status')?.startsWith('penstock; hit;') === true;

/** A gateway that has cached one payment, and the keys of its cache. */
async function startWithCachedPayment(t: TestContext) {
  const redis = await startRedis(t);
  let received = 0;
  const bank = await startStubBank(t, () => statusResponse('ACCC', { n: received++ }));
  const sandbox = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
  const gateway = await startGateway(t, {
    environments: { sandbox },
    state: { postgres: await newMigratedPostgres(), redis: redis.url, prefix: 'p:' },
  });
  const read = () => call(gateway.url, statusRead);
  await read();
  const keys = (await redis.command('KEYS', 'p:status:*')) as readonly string[]; // as Redis documents it
  return { redis, bank, read, keys };
}

describe('the status cache with invalid values in Redis', {
  skip: skipWithoutRedisServer || skipWithoutPostgres,
}, () => {
  for (const [what, write] of Object.entries(garbage)) {
    test(`answers every read, and caches again, with ${what} in place of a payment`, async (t) => {
      const { redis, read, keys, bank } = await startWithCachedPayment(t);
      const paymentKey = keys.find((key) => /^p:status:[\w-]{43}$/.test(key)) ?? assert.fail();
      await write(redis, paymentKey);
      for (let count = 0; count < 3; count++) {
        const reply = await read();
        assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'ACCC']);
      }
      assert.match((await read()).header('Cache-Status') ?? '', /^penstock; hit;/);
      assert.ok(bank.requests.length <= 3, `${bank.requests.length} requests at the bank`);
    });

    test(`answers every read with ${what} in place of the secret`, async (t) => {
      const { redis, read } = await startWithCachedPayment(t);
      await write(redis, 'p:status:secret');
      for (let count = 0; count < 3; count++) assert.equal((await read()).status, 200);
      if (what === 'a list') return; // stays until an operator purges the cache
      const secret = () => redis.command('GET', 'p:status:secret');
      await until(3_000, 'the secret is replaced', async () => /^[\w+/]{43}=$/.test(String(await secret())));
      await read();
      await until(3_000, 'the cache works with the new secret', async () => isHit(await read()));
    });
  }
});
