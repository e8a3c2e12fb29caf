/** Somebody else has written within an entry of the ledger in Redis, so that it is no text any more: it is found all the same. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { bankResponse, claimAt, entryOf, instanceOn } from '../unit/idempotency/instance.ts';

/** Two instances, and a request that one of them is sending. */
async function startSending(t: TestContext) {
  const redis = await startRedis(t);
  const newWay = redisStateFactory(redis.url, 'p:');
  const opened = async () => {
    const way = newWay();
    t.after(() => way.close());
    await way.open();
    return { way, instance: instanceOn(way) };
  };
  const [one, other] = [await opened(), await opened()];
  const claim = await one.instance.claim();
  await claim.markSending('sandbox');

  /** Spoils a character of the request's id, which decides nothing. */
  async function spoil() {
    const [key = ''] = (await redis.command('KEYS', 'p:ledger:entry:*')) as readonly string[]; // as Redis documents it
    const entry = String(await redis.command('GET', key));
    const place = entry.indexOf('"requestId":"') + '"requestId":"'.length;
    await redis.command('SETBIT', key, String(8 * place), '1');
    assert.match(String(await redis.command('GET', key)), /"requestId":"\uFFFD/);
  }
  return { one, other, claim, spoil };
}

describe('an entry of the ledger that is no text any more', { skip: skipWithoutRedisServer }, () => {
  test('is in doubt when its instance is dead, and operators see it', async (t) => {
    const { one, other, spoil } = await startSending(t);
    await spoil();
    await one.instance.services.deregister();
    assert.equal((await claimAt(other.instance)).kind, 'in-doubt');
    const [doubt] = await other.instance.services.inDoubt.all();
    assert.equal(doubt?.entry.step, 'in-doubt');
  });

  test('takes the answer of the bank, and a repeat gets it', async (t) => {
    const { other, claim, spoil } = await startSending(t);
    await spoil();
    await claim.recordResponse(bankResponse(201));
    assert.equal((await entryOf(other.way))?.step, 'answered');
    assert.equal((await claimAt(other.instance)).kind, 'answered');
  });
});
