/** Purging the cache, and retrying invalidations that the shared state did not accept. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createInvalidation } from '../../../src/status-cache/cache-store.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { bankStatusResponse, createCacheInstance, statusRead } from './cache-instance.ts';

const bank = async () => bankStatusResponse('ACCC');
const unavailable = new GatewayError('STATE_UNAVAILABLE', 'The shared state is unavailable.');

describe('a purge of the cache', () => {
  test('purges one payment and no other, on both instances', async () => {
    const state = createMemoryState();
    const [here, there] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    for (const payment of ['one', 'two']) await here.send(statusRead({ payment }));
    await here.purge({ environment: 'sandbox', payment: 'one' });
    assert.equal((await there.send(statusRead({ payment: 'one' }))).servedFrom, 'bank');
    assert.equal((await there.send(statusRead({ payment: 'two' }))).servedFrom, 'cache');
  });

  test('purges a payment in the named environment only, or in every environment if none is named', async () => {
    const { send, purge } = createCacheInstance(createMemoryState(), bank);
    await send(statusRead());
    await purge({ environment: 'production', payment: 'a-payment' });
    assert.equal((await send(statusRead())).servedFrom, 'cache');
    await purge({ payment: 'a-payment' });
    assert.equal((await send(statusRead())).servedFrom, 'bank');
  });

  test('purges all payments on the other instance with its next maintenance', async () => {
    const state = createMemoryState();
    const [here, there] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    for (const payment of ['one', 'two']) await here.send(statusRead({ payment }));
    assert.equal((await there.send(statusRead({ payment: 'two' }))).servedFrom, 'cache');
    await here.purge({});
    assert.equal((await here.send(statusRead({ payment: 'one' }))).servedFrom, 'bank');
    await there.runMaintenance();
    assert.equal((await there.send(statusRead({ payment: 'two' }))).servedFrom, 'bank');
  });

  test('keeps the rotated secret if a refresh was in progress', async () => {
    const state = createBlockingState();
    const { send, purge, runMaintenance } = createCacheInstance(state, bank);
    await send(statusRead());
    const release = state.block('read');
    const refreshing = runMaintenance();
    const purged = purge({});
    release();
    await Promise.all([refreshing, purged]);
    assert.equal((await send(statusRead())).servedFrom, 'bank');
  });

  test('fails with STATE_UNAVAILABLE if the state cannot be reached', async () => {
    const state = createFailingState();
    const { send, purge } = createCacheInstance(state, bank);
    await send(statusRead());
    state.fail();
    await assert.rejects(purge({}), { code: 'STATE_UNAVAILABLE' });
    await assert.rejects(purge({ payment: 'a-payment' }), { code: 'STATE_UNAVAILABLE' });
  });
});

describe('pending invalidations', () => {
  function createFailingInvalidation() {
    let fails = true;
    const written: string[] = [];
    const write = async (key: string) => {
      if (fails) throw unavailable;
      written.push(key);
    };
    const invalidation = createInvalidation({
      invalidateOwn: async () => {},
      invalidatePayment: write,
      invalidateAll: () => write('everything'),
    });
    const recover = () => {
      fails = false;
    };
    return { invalidation, written, recover };
  }

  test('retries an invalidation until it succeeds, and writes it once', async () => {
    const { invalidation, written, recover } = createFailingInvalidation();
    invalidation.defer('one');
    await assert.rejects(invalidation.flush(), unavailable);
    recover();
    await invalidation.flush();
    await invalidation.flush();
    assert.deepEqual(written, ['one']);
  });

  test('writes the pending invalidation of one payment, and no other', async () => {
    const { invalidation, written, recover } = createFailingInvalidation();
    invalidation.defer('one');
    invalidation.defer('two');
    await assert.rejects(invalidation.flushPayment('two'), unavailable);
    await invalidation.flushPayment('three');
    recover();
    await invalidation.flushPayment('two');
    assert.deepEqual(written, ['two']);
  });

  test('writes an invalidation again that was deferred again during its write', async () => {
    const writing = Promise.withResolvers<void>();
    let times = 0;
    const invalidatePayment = async () => {
      times++;
      await writing.promise;
    };
    const invalidation = createInvalidation({
      ...{ invalidatePayment, invalidateOwn: async () => {}, invalidateAll: invalidatePayment },
    });
    invalidation.defer('one');
    const flushing = invalidation.flush();
    await setImmediate();
    invalidation.defer('one');
    writing.resolve();
    await flushing;
    await invalidation.flush();
    assert.equal(times, 2);
  });

  test('reaches every payment although one invalidation always fails', async () => {
    const written: string[] = [];
    const invalidatePayment = async (key: string) => {
      if (key === 'failing') throw unavailable;
      written.push(key);
    };
    const invalidation = createInvalidation({
      ...{ invalidatePayment, invalidateOwn: async () => {}, invalidateAll: async () => {} },
    });
    for (const key of ['failing', 'other']) invalidation.defer(key);
    await assert.rejects(invalidation.flush(), unavailable);
    await assert.rejects(invalidation.flush(), unavailable);
    assert.deepEqual(written, ['other']);
    assert.equal(invalidation.isPending('failing'), true);
    assert.equal(invalidation.isPending('other'), false);
  });

  test('invalidates all payments if too many invalidations are pending', async () => {
    const { invalidation, written, recover } = createFailingInvalidation();
    for (let index = 0; index < 30_000; index++) invalidation.defer(`payment ${index}`);
    await assert.rejects(invalidation.flushPayment('payment 29999'), unavailable);
    recover();
    await invalidation.flushPayment('payment 29999');
    assert.deepEqual(written, ['everything']);
  });
});
