/** After its own cancellation, no TPP sees a status from before it: each way in which it could. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  authorisation,
  bankResponse,
  cancellation,
  createCacheInstance,
  statusIn,
  statusRead,
  statusResponse,
} from './cache-instance.ts';
import { createControlledBank } from './controlled-bank.ts';

describe('after a cancellation has returned', () => {
  const allow = { idempotency: { ifStateFails: 'allow' } };

  test('a read that was on its way meanwhile is asked again, and nothing of before is kept', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.says);
    const letGo = bank.hold();
    const slow = send(statusRead());
    await setImmediate();
    bank.told.now = 'CANC';
    await send(cancellation());
    letGo();
    assert.equal(statusIn(await slow), 'CANC');
    assert.equal(statusIn(await send(statusRead())), 'CANC');
  });

  test('a read of its own does not share one from before, though the state is out of reach', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send, runMaintenance } = createCacheInstance(state, bank.says, allow);
    await runMaintenance();
    state.fail();
    const letGo = bank.hold();
    const before = send(statusRead());
    await setImmediate();
    bank.told.now = 'CANC';
    await send(cancellation());
    const after = send(statusRead());
    await setImmediate();
    letGo();
    assert.equal(statusIn(await after), 'CANC');
    await before;
  });

  test('a read finds nothing of before, although the state took the forgetting only after it was back', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.says, allow);
    await send(statusRead());
    state.fail();
    bank.told.now = 'CANC';
    await send(cancellation());
    state.recover();
    assert.equal(statusIn(await send(statusRead())), 'CANC');
  });

  test('a bank that fails is not covered up by what was known before', async () => {
    const bank = createControlledBank('RCVD');
    let fails = false;
    const { send } = createCacheInstance(createMemoryState(), async () =>
      fails ? bankResponse(503) : bank.says(),
    );
    await send(statusRead());
    await send(cancellation());
    fails = true;
    assert.equal((await send(statusRead())).status, 503);
  });
});

describe('a write', () => {
  for (const write of [cancellation, authorisation]) {
    test(`is not sent if the state cannot be told before (${write.name})`, async () => {
      const state = createFailingState();
      let asked = 0;
      const { send } = createCacheInstance(state, async () => bankResponse(200 + asked++));
      state.fail('write');
      await assert.rejects(send(write()), { code: 'STATE_UNAVAILABLE' });
      assert.equal(asked, 0);
    });
  }

  test('is sent all the same if the configuration allows it, and the payment is forgotten later', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const shared = [state, createFailingState(state)] as const;
    const [here, there] = shared.map((one) =>
      createCacheInstance(one, bank.says, { idempotency: { ifStateFails: 'allow' } }),
    );
    await there?.send(statusRead());
    shared[0].fail();
    bank.told.now = 'CANC';
    assert.equal((await here?.send(cancellation()))?.status, 200);
    shared[0].recover();
    await here?.runMaintenance();
    assert.equal(statusIn((await there?.send(statusRead())) ?? assert.fail()), 'CANC');
  });

  test('whose bank answered although the state failed meanwhile comes back, and the payment is forgotten later', async () => {
    const bank = createControlledBank('RCVD');
    const shared = createMemoryState();
    const state = createFailingState(shared);
    const here = createCacheInstance(state, async (request) => {
      if (request.operation.changesStatus) {
        await there.send(statusRead()); // between the first forgetting and what the bank does
        state.fail();
        bank.told.now = 'CANC';
      }
      return bank.says();
    });
    const there = createCacheInstance(shared, bank.says);
    assert.equal((await here.send(cancellation())).status, 200);
    state.recover();
    await here.runMaintenance();
    assert.equal(statusIn(await there.send(statusRead())), 'CANC');
  });

  for (const [what, answer] of [
    ['is refused by the bank with 405', bankResponse(405)],
    ['is accepted with 202', bankResponse(202)],
    ['fails at the bank with 500', bankResponse(500)],
    ['gets no answer in time', new GatewayError('OUTCOME_UNKNOWN', 'no answer')],
    ['never reaches the bank', new GatewayError('UPSTREAM_UNREACHED', 'nobody there')],
  ] as const) {
    test(`makes the payment forgotten even if it ${what}`, async () => {
      let asked = 0;
      const { send } = createCacheInstance(createMemoryState(), async ({ operation }) => {
        if (operation.readsStatus) return statusResponse('RCVD', [], { number: asked++ });
        if (answer instanceof Error) throw answer;
        return answer;
      });
      await send(statusRead());
      await send(cancellation()).catch(() => {});
      await send(statusRead());
      assert.equal(asked, 2);
    });
  }

  test('leaves other payments as they are', async () => {
    const bank = createControlledBank('RCVD');
    const { send, counts } = createCacheInstance(createMemoryState(), bank.says);
    await send(statusRead({ payment: 'another' }));
    await send(cancellation());
    await send(statusRead({ payment: 'another' }));
    assert.equal(counts.get('hit'), 1);
  });

  test('is no business of a cache that is switched off', async () => {
    const state = createFailingState();
    const { send } = createCacheInstance(state, async () => bankResponse(202), {
      statusCache: { enabled: false },
    });
    state.fail();
    assert.equal((await send(cancellation())).status, 202);
    assert.deepEqual(state.operations, []);
  });
});
