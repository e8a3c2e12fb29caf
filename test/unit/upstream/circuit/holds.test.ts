import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMemoryState } from '../../../../src/state/memory.ts';
import { createHoldTable } from '../../../../src/store/holds.ts';
import { createHolds } from '../../../../src/upstream/circuit/holds.ts';
import { newGatewayDatabase } from '../../../kit/database.ts';
import { createFailingState } from '../../../kit/failing-state.ts';
import { createFaultyDatabase } from '../../../kit/faulty-database.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const write = { environment: 'production', lane: 'write' } as const;
const read = { environment: 'production', lane: 'read' } as const;
const open = { ...write, as: 'open', reason: 'maintenance', leftMs: 60_000 } as const;

async function startHolds(t: TestContext) {
  const time = simulateTime(t);
  const shared = await newGatewayDatabase(t);
  const state = createMemoryState(time.now);
  /** An instance that shares the database and the messages, with failures of its own. */
  const startInstance = () => {
    const database = createFaultyDatabase(shared);
    const messages = createFailingState(state);
    const holds = createHolds(createHoldTable(database), messages.pubsub, time.now);
    return { ...holds, database, messages };
  };
  const { leftMs, ...hold } = open;
  return { time, shared, startInstance, current: { ...hold, untilMs: time.now() + leftMs } };
}

describe('hold', () => {
  test('takes effect on all running instances and on those that start later', async (t) => {
    const { time, startInstance, current } = await startHolds(t);
    const [one, other] = [startInstance(), startInstance()];
    await one.hold(open);
    await time.settle();
    const late = startInstance();
    await late.refresh();
    for (const holds of [one, other, late]) {
      assert.deepEqual([holds.of(write), holds.of(read)], [current, undefined]);
    }
  });

  test('ends at its time', async (t) => {
    const { time, startInstance, current } = await startHolds(t);
    const holds = startInstance();
    await holds.hold(open);
    await time.pass(59_999);
    assert.deepEqual(holds.of(write), current);
    await time.pass(1);
    assert.equal(holds.of(write), undefined);
    await holds.refresh();
    assert.equal(holds.of(write), undefined);
  });

  test('lasts for its duration on the clock of the database, whatever the clock of an instance shows', async (t) => {
    const { time, shared, current } = await startHolds(t);
    const wall = () => time.now() + 3_600_000;
    const holds = createHolds(createHoldTable(shared), createMemoryState().pubsub, wall);
    await holds.hold(open);
    assert.deepEqual(holds.of(write), { ...current, untilMs: wall() + open.leftMs });
    await time.pass(open.leftMs, open.leftMs);
    assert.equal(holds.of(write), undefined);
  });

  test('is replaced by a later hold on the same circuit, and released on all instances', async (t) => {
    const { time, startInstance } = await startHolds(t);
    const [one, other] = [startInstance(), startInstance()];
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
    const { time, startInstance } = await startHolds(t);
    const [one, other] = [startInstance(), startInstance()];
    await Promise.all([one.hold(open), other.hold({ ...open, ...read })]);
    await time.settle();
    for (const holds of [one, other]) assert.ok(holds.of(write) && holds.of(read));
  });

  test('is deleted with the next change after its end', async (t) => {
    const { time, shared, startInstance } = await startHolds(t);
    const holds = startInstance();
    await holds.hold(open);
    await time.pass(open.leftMs, open.leftMs);
    await holds.hold({ ...open, ...read });
    const stored = await shared.query('SELECT lane FROM hold');
    assert.deepEqual(
      stored.map(({ lane }) => lane),
      ['read'],
    );
  });

  test('of a lane that this version does not have is ignored', async (t) => {
    const { shared, startInstance, current } = await startHolds(t);
    const holds = startInstance();
    await createHoldTable(shared).hold({ ...open, lane: 'express' });
    await holds.hold(open);
    assert.deepEqual(holds.of(write), current);
  });
});

describe('holds while the database is unavailable', () => {
  test('stay in effect, and changes are refused', async (t) => {
    const { startInstance, current } = await startHolds(t);
    const holds = startInstance();
    await holds.hold(open);
    holds.database.fail('before');
    await assert.rejects(holds.release(write), { code: 'STATE_UNAVAILABLE' });
    await assert.rejects(holds.hold({ ...open, as: 'closed' }), { code: 'STATE_UNAVAILABLE' });
    await assert.rejects(holds.refresh(), { code: 'STATE_UNAVAILABLE' });
    assert.deepEqual(holds.of(write), current);
    holds.database.recover();
    await holds.refresh();
    assert.deepEqual(holds.of(write), current);
  });

  test('are known with the next refresh if the answer to a change was lost', async (t) => {
    const { startInstance, current } = await startHolds(t);
    const holds = startInstance();
    holds.database.fail('after', /^INSERT INTO hold/);
    await assert.rejects(holds.hold(open), { code: 'STATE_UNAVAILABLE' });
    assert.equal(holds.of(write), undefined);
    await holds.refresh();
    assert.deepEqual(holds.of(write), current);
  });
});

test('a hold takes effect with the next refresh if the message about it is lost', async (t) => {
  const { time, startInstance, current } = await startHolds(t);
  const [one, other] = [startInstance(), startInstance()];
  one.messages.fail('publish');
  await one.hold(open);
  await time.settle();
  assert.equal(other.of(write), undefined);
  await other.refresh();
  assert.deepEqual(other.of(write), current);
});
