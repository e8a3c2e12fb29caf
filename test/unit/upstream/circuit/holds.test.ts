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
  return { time, state, open, holdsOn: (way = state) => createHolds(way, time.now) };
}

describe('a hold', () => {
  test('reaches all instances at once, and those that start later', async (t) => {
    const { time, open, holdsOn } = startHolds(t);
    const [one, other] = [holdsOn(), holdsOn()];
    await one.hold(open);
    await time.settle();
    const late = holdsOn();
    await late.refresh();
    for (const holds of [one, other, late]) {
      assert.deepEqual([holds.of(write), holds.of(read)], [open, undefined]);
    }
  });

  test('ends by itself', async (t) => {
    const { time, open, holdsOn } = startHolds(t);
    const holds = holdsOn();
    await holds.hold(open);
    await time.pass(59_999);
    assert.deepEqual(holds.of(write), open);
    await time.pass(1);
    assert.equal(holds.of(write), undefined);
    await holds.refresh();
    assert.equal(holds.of(write), undefined);
  });

  test('is replaced by the next one on the same circuit, and lifted for all', async (t) => {
    const { time, open, holdsOn } = startHolds(t);
    const [one, other] = [holdsOn(), holdsOn()];
    await one.hold(open);
    await other.hold({ ...open, as: 'closed' });
    await other.hold({ ...open, ...read });
    await time.settle();
    assert.deepEqual([one.of(write)?.as, one.of(read)?.as], ['closed', 'open']);
    await one.release(write);
    await time.settle();
    assert.deepEqual([other.of(write), other.of(read)?.as], [undefined, 'open']);
  });

  test('is not lost when two are set at the same moment', async (t) => {
    const { time, open, holdsOn } = startHolds(t);
    const [one, other] = [holdsOn(), holdsOn()];
    await Promise.all([one.hold(open), other.hold({ ...open, ...read })]);
    await time.settle();
    for (const holds of [one, other]) assert.ok(holds.of(write) && holds.of(read));
  });
});

describe('while the state is out of reach', () => {
  test('no hold is set half, and those that are known stay', async (t) => {
    const { open, state, holdsOn } = startHolds(t);
    const failing = createFailingState(state);
    const holds = holdsOn(failing);
    await holds.hold(open);
    failing.fail();
    await assert.rejects(holds.release(write), { code: 'STATE_UNAVAILABLE' });
    await assert.rejects(holds.refresh(), { code: 'STATE_UNAVAILABLE' });
    assert.deepEqual(holds.of(write), open);
  });

  test('a hold whose announcement got lost comes with the heartbeat', async (t) => {
    const { open, state, holdsOn } = startHolds(t);
    const failing = createFailingState(state);
    const [one, other] = [holdsOn(failing), holdsOn()];
    failing.fail('publish');
    await one.hold(open);
    assert.equal(other.of(write), undefined);
    await other.refresh();
    assert.deepEqual(other.of(write), open);
  });
});

test('what is not ours in the state is no hold, and is replaced', async (t) => {
  const { open, state, holdsOn } = startHolds(t);
  const holds = holdsOn();
  for (const garbage of ['', '{', '[{"as":"ajar"}]', 'null']) {
    await state.keyValues.write('circuit:holds', garbage);
    await holds.refresh();
    assert.equal(holds.of(write), undefined);
    await holds.hold(open);
    assert.deepEqual(holds.of(write), open);
  }
});
