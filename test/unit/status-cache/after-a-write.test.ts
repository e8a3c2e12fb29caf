/** After its own cancellation, no TPP sees a status from before it: each way in which it could. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/flow/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  answerOf,
  authorisation,
  cancellation,
  createInstance,
  statusAnswer,
  statusIn,
  statusRead,
} from './instance.ts';
import { bankThatSays } from './moving-bank.ts';

describe('after a cancellation has returned', () => {
  const allow = { idempotency: { ifStateFails: 'allow' } };

  test('a read that was on its way meanwhile is asked again, and nothing of before is kept', async () => {
    const bank = bankThatSays('RCVD');
    const { ask } = createInstance(createMemoryState(), bank.says);
    const letGo = bank.hold();
    const slow = ask(statusRead());
    await setImmediate();
    bank.told.now = 'CANC';
    await ask(cancellation());
    letGo();
    assert.equal(statusIn(await slow), 'CANC');
    assert.equal(statusIn(await ask(statusRead())), 'CANC');
  });

  test('a read of its own does not share one from before, though the state is out of reach', async () => {
    const bank = bankThatSays('RCVD');
    const state = createFailingState();
    const { ask, beat } = createInstance(state, bank.says, allow);
    await beat();
    state.fail();
    const letGo = bank.hold();
    const before = ask(statusRead());
    await setImmediate();
    bank.told.now = 'CANC';
    await ask(cancellation());
    const after = ask(statusRead());
    await setImmediate();
    letGo();
    assert.equal(statusIn(await after), 'CANC');
    await before;
  });

  test('a read finds nothing of before, although the state took the forgetting only after it was back', async () => {
    const bank = bankThatSays('RCVD');
    const state = createFailingState();
    const { ask } = createInstance(state, bank.says, allow);
    await ask(statusRead());
    state.fail();
    bank.told.now = 'CANC';
    await ask(cancellation());
    state.heal();
    assert.equal(statusIn(await ask(statusRead())), 'CANC');
  });

  test('a bank that fails is not covered up by what was known before', async () => {
    const bank = bankThatSays('RCVD');
    let fails = false;
    const { ask } = createInstance(createMemoryState(), async () => (fails ? answerOf(503) : bank.says()));
    await ask(statusRead());
    await ask(cancellation());
    fails = true;
    assert.equal((await ask(statusRead())).status, 503);
  });
});

describe('a write', () => {
  for (const write of [cancellation, authorisation]) {
    test(`is not sent if the state cannot be told before (${write.name})`, async () => {
      const state = createFailingState();
      let asked = 0;
      const { ask } = createInstance(state, async () => answerOf(200 + asked++));
      state.fail('write');
      await assert.rejects(ask(write()), { code: 'STATE_UNAVAILABLE' });
      assert.equal(asked, 0);
    });
  }

  test('is sent all the same if the configuration allows it, and the payment is forgotten later', async () => {
    const bank = bankThatSays('RCVD');
    const state = createFailingState();
    const shared = [state, createFailingState(state)] as const;
    const [here, there] = shared.map((one) =>
      createInstance(one, bank.says, { idempotency: { ifStateFails: 'allow' } }),
    );
    await there?.ask(statusRead());
    shared[0].fail();
    bank.told.now = 'CANC';
    assert.equal((await here?.ask(cancellation()))?.status, 200);
    shared[0].heal();
    await here?.beat();
    assert.equal(statusIn((await there?.ask(statusRead())) ?? assert.fail()), 'CANC');
  });

  test('whose bank answered although the state failed meanwhile comes back, and the payment is forgotten later', async () => {
    const bank = bankThatSays('RCVD');
    const shared = createMemoryState();
    const state = createFailingState(shared);
    const here = createInstance(state, async (request) => {
      if (request.operation.changesStatus) {
        await there.ask(statusRead()); // between the first forgetting and what the bank does
        state.fail();
        bank.told.now = 'CANC';
      }
      return bank.says();
    });
    const there = createInstance(shared, bank.says);
    assert.equal((await here.ask(cancellation())).status, 200);
    state.heal();
    await here.beat();
    assert.equal(statusIn(await there.ask(statusRead())), 'CANC');
  });

  for (const [what, answer] of [
    ['is refused by the bank with 405', answerOf(405)],
    ['is accepted with 202', answerOf(202)],
    ['fails at the bank with 500', answerOf(500)],
    ['gets no answer in time', new GatewayError('OUTCOME_UNKNOWN', 'no answer')],
    ['never reaches the bank', new GatewayError('UPSTREAM_UNREACHED', 'nobody there')],
  ] as const) {
    test(`makes the payment forgotten even if it ${what}`, async () => {
      let asked = 0;
      const { ask } = createInstance(createMemoryState(), async ({ operation }) => {
        if (operation.readsStatus) return statusAnswer('RCVD', [], { number: asked++ });
        if (answer instanceof Error) throw answer;
        return answer;
      });
      await ask(statusRead());
      await ask(cancellation()).catch(() => {});
      await ask(statusRead());
      assert.equal(asked, 2);
    });
  }

  test('leaves other payments as they are', async () => {
    const bank = bankThatSays('RCVD');
    const { ask, counts } = createInstance(createMemoryState(), bank.says);
    await ask(statusRead({ payment: 'another' }));
    await ask(cancellation());
    await ask(statusRead({ payment: 'another' }));
    assert.equal(counts.get('hit'), 1);
  });

  test('is no business of a cache that is switched off', async () => {
    const state = createFailingState();
    const { ask } = createInstance(state, async () => answerOf(202), { statusCache: { enabled: false } });
    state.fail();
    assert.equal((await ask(cancellation())).status, 202);
    assert.deepEqual(state.asked, []);
  });
});
