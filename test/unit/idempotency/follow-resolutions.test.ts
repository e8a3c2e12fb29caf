import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMemoryState } from '../../../src/state/memory.ts';
import {
  createInstance,
  entryOf,
  type Instance,
  inDoubtWriteOf,
  lateAnswerMs,
  useFakeTime,
} from './instance.ts';
import { identityOf, initiation } from './requests.ts';

const given = { who: 'an operator', reason: 'confirmed by the bank' } as const;
const { id } = identityOf(initiation());

/** Two instances; a write of the first one is in doubt, and an operator resolves it at the other one. */
async function resolveAtOther(t: Parameters<typeof useFakeTime>[0], outcome: 'happened' | 'did-not-happen') {
  const time = useFakeTime(t);
  const state = createMemoryState();
  const [first, other] = [createInstance(state), createInstance(state)];
  const claim = await first.claim();
  await claim.markSending('sandbox');
  await claim.markInDoubt('no answer');
  time.skip(lateAnswerMs + 60_000);
  const write = await inDoubtWriteOf(state);
  const resolved = await other.resolve({ ...given, id: write.id, outcome });
  assert.deepEqual(resolved, { kind: 'resolved' });
  return { state, first, other };
}

const memoryOf = ({ services }: Instance) => services.ownWrites.entryOf(id);

describe('an instance whose write in doubt is resolved at another instance', () => {
  test('does not remember the write as in doubt if it did not happen and was executed by the other one', async (t) => {
    const { first, other } = await resolveAtOther(t, 'did-not-happen');
    await (await other.claim()).markSending('sandbox');
    assert.equal(memoryOf(first)?.step, 'in-doubt');
    await first.services.maintain();
    assert.equal(memoryOf(first), undefined);
  });

  test('remembers that the write happened, and for how long', async (t) => {
    const { first } = await resolveAtOther(t, 'happened');
    await first.services.maintain();
    assert.equal(memoryOf(first)?.step, 'happened');
    assert.deepEqual(first.services.ownWrites.unresolvedIds(), []);
  });

  test('remembers the write as in doubt if the shared state has only lost it', async (t) => {
    const { state, first } = await resolveAtOther(t, 'did-not-happen');
    await state.keyValues.remove('ledger:epoch');
    await first.services.maintain().catch(() => {}); // the state is checked
    assert.equal(memoryOf(first)?.step, 'in-doubt');
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });
});
