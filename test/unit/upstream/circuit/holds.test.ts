import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMemoryState } from '../../../../src/state/memory.ts';
import { createHolds, type Hold } from '../../../../src/upstream/circuit/holds.ts';
import { createFailingState } from '../../../kit/failing-state.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const write = { environment: 'production', lane: 'write' } as const;
const read = { environment: 'production', lane: 'read' } as const;

function startHolds(t: TestContext) {
  const time = simulateTime(t);
  const state = createMemoryState(time.now);
  const untilMs = time.now() + 60_000;
  const open: Hold = { ...write, as: 'open', reason: 'maintenance', untilMs };
  return { time, state, open, createHoldsOn: (on = state) => createHolds(on, time.now) };
}

describe('hold', () => {
  test('takes effect on all running instances and on those that start later', async (t) => {
    const { time, open, createHoldsOn } = startHolds(t);
    const [one, other] = [createHoldsOn(), createHoldsOn()];
    await one.hold(open);
    await time.settle();
    const late = createHoldsOn();
    await late.refresh();
    for (const holds of [one, other, late]) {
      assert.deepEqual([holds.of(write), holds.of(read)], [open, undefined]);
    }
  });

  test('ends at its time', async (t) => {
    const { time, open, createHoldsOn } = startHolds(t);
    const holds = createHoldsOn();
    await holds.hold(open);
    await time.pass(59_999);
    assert.deepEqual(holds.of(write), open);
    await time.pass(1);
    assert.equal(holds.of(write), undefined);
    await holds.refresh();
    assert.equal(holds.of(write), undefined);
  });

  test('is replaced by a later hold on the same circuit, and released on all instances', async (t) => {
    const { time, open, createHoldsOn } = startHolds(t);
    const [one, other] = [createHoldsOn(), createHoldsOn()];
    await one.hold(open);
    await other.hold({ ...open, as: 'closed' });
    await other.hold({ ...open, ...read });
    await time.settle();
    assert.deepEqual([one.of(write)?.as, one.of(read)?.as], ['closed', 'open']);
    await one.release(write);
    await time.settle();
    assert.deepEqual([other.of(write), other.of(read)?.as], [undefined, 'open']);
  });

  test('is kept if another instance sets a hold on another circuit at the same time', async (t) => {
    const { time, open, createHoldsOn } = startHolds(t);
    const [one, other] = [createHoldsOn(), createHoldsOn()];
    await Promise.all([one.hold(open), other.hold({ ...open, ...read })]);
    await time.settle();
    for (const holds of [one, other]) assert.ok(holds.of(write) && holds.of(read));
  });
});

describe('holds while the state is unavailable', () => {
  test('stay in effect, and changes are refused', async (t) => {
    const { open, state, createHoldsOn } = startHolds(t);
    const failing = createFailingState(state);
    const holds = createHoldsOn(failing);
    await holds.hold(open);
    failing.fail();
    await assert.rejects(holds.release(write), { code: 'STATE_UNAVAILABLE' });
    await assert.rejects(holds.refresh(), { code: 'STATE_UNAVAILABLE' });
    assert.deepEqual(holds.of(write), open);
  });

  test('take effect with the next refresh if the message about a change was lost', async (t) => {
    const { open, state, createHoldsOn } = startHolds(t);
    const failing = createFailingState(state);
    const [one, other] = [createHoldsOn(failing), createHoldsOn()];
    failing.fail('publish');
    await one.hold(open);
    assert.equal(other.of(write), undefined);
    await other.refresh();
    assert.deepEqual(other.of(write), open);
  });
});

test('foreign values under the key of the holds are ignored and replaced', async (t) => {
  const { open, state, createHoldsOn } = startHolds(t);
  const holds = createHoldsOn();
  for (const garbage of ['', '{', '[{"as":"ajar"}]', 'null']) {
    await state.keyValues.write('circuit:holds', garbage);
    await holds.refresh();
    assert.equal(holds.of(write), undefined);
    await holds.hold(open);
    assert.deepEqual(holds.of(write), open);
  }
});
