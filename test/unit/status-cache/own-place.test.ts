/** Several instances, and no Redis, or one that cannot be reached: each caches for itself what does not change any more. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankStatusResponse,
  cancellation,
  createCacheInstance,
  paymentRead,
  statusIn,
  statusRead,
} from './cache-instance.ts';

/** An instance whose shared state the test lets fail, and a bank that counts its reads. */
async function startInstance() {
  let status = 'RCVD';
  let reads = 0;
  const state = createFailingState();
  const own = createMemoryState().keyValues;
  const instance = createCacheInstance({ ...state, own }, async () => {
    reads += 1;
    return bankStatusResponse(status);
  });
  await instance.runMaintenance(); // reads the secret of the cache keys
  return {
    ...instance,
    state,
    set(next: string) {
      status = next;
    },
    /** Reads the status. @returns it, and whether the bank was asked */
    async read() {
      const before = reads;
      const text = statusIn(await instance.send(statusRead()));
      return [text, reads > before] as const;
    },
  };
}

describe('the status cache of an instance that cannot reach Redis', () => {
  for (const status of ['RJCT', 'CANC', 'ACCC'])
    test(`serves the final status ${status}`, async () => {
      const { state, set, read } = await startInstance();
      state.fail();
      set(status);
      assert.deepEqual(await read(), [status, true]);
      assert.deepEqual(await read(), [status, false]);
    });

  for (const status of ['RCVD', 'ACTC', 'ACSC'])
    test(`asks the bank for every read of the status ${status}, which may change`, async () => {
      const { state, set, read } = await startInstance();
      state.fail();
      set(status);
      for (const _ of [1, 2]) assert.deepEqual(await read(), [status, true]);
    });

  test('serves nothing that was cached in Redis before, and caches there again afterwards', async () => {
    const { state, read, runMaintenance } = await startInstance();
    await read();
    assert.deepEqual(await read(), ['RCVD', false]);
    state.fail();
    assert.deepEqual(await read(), ['RCVD', true]);
    state.recover();
    await runMaintenance();
    assert.deepEqual(await read(), ['RCVD', true], 'the others may have changed it');
    assert.deepEqual(await read(), ['RCVD', false]);
  });

  for (const [what, change] of [
    ['a write', cancellation],
    ['another status in the payment', paymentRead],
  ] as const)
    test(`serves no status from before ${what}`, async () => {
      const { state, set, read, send } = await startInstance();
      state.fail();
      set('RJCT');
      await read();
      set('CANC');
      await send(change());
      assert.deepEqual(await read(), ['CANC', true]);
    });

  test('serves no status that it has cached in an earlier outage if another one was seen since', async () => {
    const { state, set, read, send } = await startInstance();
    state.fail();
    set('RJCT');
    await read();
    state.recover();
    set('CANC');
    await send(statusRead({ headers: [['Cache-Control', 'no-cache']] }));
    state.fail();
    assert.deepEqual(await read(), ['CANC', true]);
  });

  test('serves nothing after a purge of the payment', async () => {
    const { state, set, read, purge } = await startInstance();
    state.fail();
    set('RJCT');
    await read();
    await assert.rejects(purge({ environment: 'sandbox', payment: 'a-payment' }), {
      code: 'STATE_UNAVAILABLE',
    });
    assert.deepEqual(await read(), ['RJCT', true]);
  });
});

describe('the status cache of several instances without Redis', () => {
  for (const [status, isCached] of [
    ['RCVD', false],
    ['ACSC', false],
    ['RJCT', true],
  ] as const)
    test(`${isCached ? 'serves the final status' : 'asks the bank for every read of the status'} ${status}`, async () => {
      let reads = 0;
      const { send } = createCacheInstance({ ...createMemoryState(), isUnshared: true }, async () => {
        reads += 1;
        return bankStatusResponse(status);
      });
      for (const _ of [1, 2]) assert.equal(statusIn(await send(statusRead())), status);
      assert.equal(reads, isCached ? 1 : 2);
    });
});
