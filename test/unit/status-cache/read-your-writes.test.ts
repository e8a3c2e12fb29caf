/** Read your writes: after its own cancellation, a TPP never gets a status from before it. One test for each way it could. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  authorisation,
  bankResponse,
  bankStatusResponse,
  cancellation,
  createCacheInstance,
  statusIn,
  statusRead,
} from './cache-instance.ts';
import { createControlledBank } from './controlled-bank.ts';

describe('status reads after a cancellation', () => {
  test('fetches a read again that was in progress during the cancellation, and stores nothing older', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    const release = bank.holdNext();
    const slow = send(statusRead());
    await setImmediate();
    bank.answer.status = 'CANC';
    await send(cancellation());
    release();
    assert.equal(statusIn(await slow), 'CANC');
    assert.equal(statusIn(await send(statusRead())), 'CANC');
  });

  test('does not share a read from before the cancellation while the state is unavailable', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send, runMaintenance } = createCacheInstance(state, bank.handle);
    await runMaintenance();
    state.fail();
    const release = bank.holdNext();
    const before = send(statusRead());
    await setImmediate();
    bank.answer.status = 'CANC';
    await send(cancellation());
    const after = send(statusRead());
    await setImmediate();
    release();
    assert.equal(statusIn(await after), 'CANC');
    await before;
  });

  test('serves nothing older than the cancellation if the state accepted the invalidation late', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.handle);
    await send(statusRead());
    state.fail();
    bank.answer.status = 'CANC';
    await send(cancellation());
    state.recover();
    assert.equal(statusIn(await send(statusRead())), 'CANC');
  });

  test('serves no stale status from before the cancellation while the bank fails', async () => {
    const bank = createControlledBank('RCVD');
    let fails = false;
    const { send } = createCacheInstance(createMemoryState(), async () =>
      fails ? bankResponse(503) : bank.handle(),
    );
    await send(statusRead());
    await send(cancellation());
    fails = true;
    assert.equal((await send(statusRead())).status, 503);
  });
});

describe('invalidation around a write', () => {
  for (const write of [cancellation, authorisation])
    test(`does not refuse a write that cannot invalidate first, and invalidates later (${write.name})`, async () => {
      const bank = createControlledBank('RCVD');
      const state = createFailingState();
      const here = createCacheInstance(state, bank.handle);
      const there = createCacheInstance(createFailingState(state), bank.handle);
      await there.send(statusRead());
      state.fail();
      bank.answer.status = 'CANC';
      assert.equal((await here.send(write())).status, 200);
      state.recover();
      await here.runMaintenance();
      assert.equal(statusIn(await there.send(statusRead())), 'CANC');
    });

  test('returns the response to a write although the second invalidation failed, and invalidates later', async () => {
    const bank = createControlledBank('RCVD');
    const shared = createMemoryState();
    const state = createFailingState(shared);
    const here = createCacheInstance(state, async (request) => {
      if (request.operation.changesStatus) {
        await there.send(statusRead()); // between the first invalidation and the write at the bank
        state.fail();
        bank.answer.status = 'CANC';
      }
      return bank.handle();
    });
    const there = createCacheInstance(shared, bank.handle);
    assert.equal((await here.send(cancellation())).status, 200);
    state.recover();
    await here.runMaintenance();
    assert.equal(statusIn(await there.send(statusRead())), 'CANC');
  });

  for (const [what, answer] of [
    ['is refused by the bank with 405', bankResponse(405)],
    ['is accepted with 202', bankResponse(202)],
    ['fails at the bank with 500', bankResponse(500)],
    ['gets no response in time', new GatewayError('OUTCOME_UNKNOWN', 'no response')],
    ['never reaches the bank', new GatewayError('UPSTREAM_UNREACHED', 'connection refused')],
  ] as const) {
    test(`invalidates the payment even if the write ${what}`, async () => {
      let fetches = 0;
      const { send } = createCacheInstance(createMemoryState(), async ({ operation }) => {
        if (operation.readsStatus) return bankStatusResponse('RCVD', [], { number: fetches++ });
        if (answer instanceof Error) throw answer;
        return answer;
      });
      await send(statusRead());
      await send(cancellation()).catch(() => {});
      await send(statusRead());
      assert.equal(fetches, 2);
    });
  }

  test('does not invalidate other payments', async () => {
    const bank = createControlledBank('RCVD');
    const { send, counts } = createCacheInstance(createMemoryState(), bank.handle);
    await send(statusRead({ payment: 'another' }));
    await send(cancellation());
    await send(statusRead({ payment: 'another' }));
    assert.equal(counts.get('hit'), 1);
  });

  test('does not invalidate anything if the cache is disabled', async () => {
    const state = createFailingState();
    const { send } = createCacheInstance(state, async () => bankResponse(202), {
      statusCache: { enabled: false },
    });
    state.fail();
    assert.equal((await send(cancellation())).status, 202);
    assert.deepEqual(state.operations, []);
  });
});
