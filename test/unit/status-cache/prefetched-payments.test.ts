/** Payments that were read before the environment of the request was known: only a guess, and never behind. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RoutedRequest } from '../../../src/request/messages.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import {
  cacheStatus,
  createStatusCache,
  createStatusCacheServices,
} from '../../../src/status-cache/cache-status.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { configOf } from '../../kit/gateway.ts';
import { bankStatusResponse, paymentRead, statusIn, statusRead } from './cache-instance.ts';

const config = configOf({
  environments: { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } },
});

/** An instance in front of a bank that answers one status after the other: ACTC, ACSC, and then RJCT. */
function startInstance() {
  const state = createFailingState(createMemoryState());
  const services = createStatusCacheServices(state);
  const cache = createStatusCache(config, services);
  const stage = cacheStatus(cache);
  const statuses = ['ACTC', 'ACSC', 'RJCT'];
  const bank = async () => bankStatusResponse(statuses.shift() ?? 'RJCT');
  const prefetch = (environmentId = 'sandbox') => {
    const request = statusRead();
    return { ...request, prefetched: cache.prefetch(request, environmentId) };
  };
  const reads = () =>
    state.operations.filter((operation) => /^read status:(?!secret)/.test(operation)).length;
  const send = (request: RoutedRequest = statusRead()) => stage(request, bank);
  return { state, send, prefetch, reads };
}

describe('a payment that was read in advance', () => {
  test('answers a status read without a second read of the state', async () => {
    const { send, prefetch, reads } = startInstance();
    await send();
    const before = reads();
    const response = await send(prefetch());
    assert.deepEqual([statusIn(response), response.servedFrom, reads() - before], ['ACTC', 'cache', 1]);
  });

  test('is not used if it was read for another environment', async () => {
    const { send, prefetch, reads } = startInstance();
    await send();
    const before = reads();
    const response = await send(prefetch('production'));
    assert.deepEqual([statusIn(response), response.servedFrom, reads() - before], ['ACTC', 'cache', 2]);
  });

  test('is not used if its invalidation was queued in between', async () => {
    const { send, prefetch, state } = startInstance();
    await send();
    const request = prefetch();
    state.fail();
    assert.equal(statusIn(await send(paymentRead())), 'ACSC'); // cannot be recorded
    state.recover();
    assert.equal(statusIn(await send(request)), 'RJCT');
  });

  test('does not fail the request if it could not be read', async () => {
    const { send, prefetch, state } = startInstance();
    await send();
    state.fail();
    const request = prefetch();
    assert.equal(statusIn(await send(request)), 'ACSC');
  });

  test('exists for status reads only', () => {
    const cache = createStatusCache(config, createStatusCacheServices(createMemoryState()));
    assert.ok(cache.prefetch(statusRead(), 'sandbox'));
    assert.equal(cache.prefetch(paymentRead(), 'sandbox'), undefined);
  });
});
