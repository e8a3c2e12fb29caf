/** A ledger entry in Redis that was corrupted so that it is no longer valid UTF-8. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { bankResponse, createInstance, entryOf } from '../unit/idempotency/instance.ts';

/** Two instances, and a request that the first one is sending. */
async function startSending(t: TestContext) {
  const redis = await startRedis(t);
  const newConnection = redisStateFactory(redis.url, 'p:');
  const open = async () => {
    const connection = newConnection();
    t.after(() => connection.close());
    await connection.open();
    return { connection, instance: createInstance(connection) };
  };
  const [first, second] = [await open(), await open()];
  const claim = await first.instance.claim();
  await claim.markSending('sandbox');

  /** Corrupts a character of `requestId`, which only operators read. */
  async function corrupt() {
    const [key = ''] = (await redis.command('KEYS', 'p:ledger:entry:*')) as readonly string[]; // as Redis documents it
    const entry = String(await redis.command('GET', key));
    const offset = entry.indexOf('"requestId":"') + '"requestId":"'.length;
    await redis.command('SETBIT', key, String(8 * offset), '1');
    assert.match(String(await redis.command('GET', key)), /"requestId":"\uFFFD/);
  }
  return { first, second, claim, corrupt };
}

describe('a corrupt ledger entry', { skip: skipWithoutRedisServer }, () => {
  test('is put in doubt and listed when its instance is dead', async (t) => {
    const { first, second, corrupt } = await startSending(t);
    await corrupt();
    await first.instance.services.deregister();
    assert.equal((await second.instance.lookUp()).kind, 'in-doubt');
    const [write] = await second.instance.services.inDoubt.all();
    assert.equal(write?.entry.step, 'in-doubt');
  });

  test('stores the response of the bank, which a repeat gets', async (t) => {
    const { second, claim, corrupt } = await startSending(t);
    await corrupt();
    await claim.recordResponse(bankResponse(201));
    assert.equal((await entryOf(second.connection))?.step, 'answered');
    assert.equal((await second.instance.lookUp()).kind, 'answered');
  });
});
