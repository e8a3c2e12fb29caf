/** After a notification of the bank, cached responses of the payment are expired, and its status remains known. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { headerValue } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { paymentKeyOf } from '../../../src/status-cache/cache-key.ts';
import { createCacheInstance, statusIn, statusRead } from './cache-instance.ts';
import { createControlledBank } from './controlled-bank.ts';

const paymentKey = paymentKeyOf('sandbox', 'a-payment');

function createTwo() {
  const bank = createControlledBank('RCVD');
  const failure = { isFailing: false };
  const state = createMemoryState();
  const handle = async () => {
    if (failure.isFailing) throw new GatewayError('UPSTREAM_UNREACHED', 'the bank fails');
    return bank.handle();
  };
  const [here, there] = [createCacheInstance(state, handle), createCacheInstance(state, handle)];
  return { bank, failure, here, there };
}

describe('a cached status that a notification has expired', () => {
  test('is read from the bank again, on every instance, and is then cached again', async () => {
    const { bank, here, there } = createTwo();
    await here.send(statusRead());
    await here.statuses.expire(paymentKey);
    assert.equal((await there.send(statusRead())).servedFrom, 'bank');
    assert.equal((await here.send(statusRead())).servedFrom, 'cache');

    bank.answer.status = 'ACSC';
    await there.statuses.expire(paymentKey);
    const changed = await here.send(statusRead());
    assert.deepEqual([changed.servedFrom, statusIn(changed)], ['bank', 'ACSC']);
  });

  test('is not brought back by a read that began before', async () => {
    const { bank, here, there } = createTwo();
    await here.send(statusRead());
    await here.statuses.expire(paymentKey);
    const release = bank.holdNext();
    const slow = here.send(statusRead());
    await new Promise(setImmediate);
    bank.answer.status = 'ACSC';
    await there.statuses.expire(paymentKey);
    release();

    assert.equal(statusIn(await slow), 'RCVD');
    assert.equal(statusIn(await there.send(statusRead())), 'ACSC');
  });

  test('remains known, since when it was seen first, as one that was not read since', async () => {
    const { here } = createTwo();
    await here.send(statusRead());
    const before = await here.statuses.recorded(paymentKey);
    await here.statuses.expire(paymentKey);
    const after = await here.statuses.recorded(paymentKey);

    assert.ok(before && after);
    assert.notEqual(after.generation, before.generation);
    assert.deepEqual(after, { ...before, generation: after.generation, readAtMs: 0 });
  });

  test('is served as stale while the bank fails', async () => {
    const { failure, here } = createTwo();
    await here.send(statusRead());
    await here.statuses.expire(paymentKey);
    failure.isFailing = true;
    const { servedFrom, headers } = await here.send(statusRead());
    assert.equal(servedFrom, 'stale-cache');
    assert.match(headerValue(headers, 'cache-status') ?? '', /^penstock; hit; fwd=stale; ttl=-?\d{1,3}$/);
  });

  test('may be unknown: then the next read asks the bank', async () => {
    const { here } = createTwo();
    await here.statuses.expire(paymentKey);
    assert.equal((await here.send(statusRead())).servedFrom, 'bank');
    assert.equal((await here.send(statusRead())).servedFrom, 'cache');
  });
});
