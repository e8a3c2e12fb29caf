/** A TPP is told by its deadline; the bank is listened to all the same. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ErrorCode, GatewayError } from '../../../src/flow/errors.ts';
import { answer, codeOf, keptOf, start } from './ledger.ts';
import { createBehind } from './line.ts';
import { initiation } from './requests.ts';
import { quiet } from './stopped-clocks.ts';

/** A request that was sent, and has until its deadline. */
function sentOne(t: Parameters<typeof start>[0]) {
  const started = start(t);
  const behind = createBehind();
  let code: ErrorCode | undefined;
  const first = started.instance.ask(initiation({ withinMs: 5_000 }), behind.next);
  first.catch((error: GatewayError) => {
    code = error.code;
  });
  return { ...started, behind, first, code: () => code };
}

describe('a request that the bank does not answer by the deadline', () => {
  test('is in doubt from then on, and not before; its TPP is told so then', async (t) => {
    const { clocks, state, code } = sentOne(t);
    await quiet();
    await clocks.pass(4_999);
    assert.equal(code(), undefined);
    assert.equal((await keptOf(state))?.step, 'sending');
    await clocks.pass(6);
    assert.equal(code(), 'OUTCOME_UNKNOWN');
    assert.equal((await keptOf(state))?.step, 'in-doubt');
  });

  test('is answered for repeats when the bank answers late, and the trail says so', async (t) => {
    const { clocks, instance, behind, first } = sentOne(t);
    await quiet();
    await clocks.pass(5_005);
    assert.equal(await codeOf(first), 'OUTCOME_UNKNOWN');
    assert.equal(await codeOf(instance.ask(initiation(), behind.next)), 'DUPLICATE_IN_DOUBT');
    behind.answer(answer(201, 'made'));
    await quiet();
    const repeat = await instance.ask(initiation(), behind.next);
    assert.equal(repeat.body.toString(), 'made');
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
    const late = instance.facts.filter(({ what }) => what === 'late-answer');
    assert.deepEqual(late, [{ what: 'late-answer', status: 201 }]);
    assert.deepEqual(await instance.lasting.doubts.all(), []);
    assert.equal(behind.sent(), 1);
  });

  test('is free again when the bank says late that it is too busy', async (t) => {
    const { clocks, state, behind } = sentOne(t);
    await quiet();
    await clocks.pass(5_005);
    behind.answer(answer(429));
    await quiet();
    assert.equal(await keptOf(state), undefined);
  });

  test('stays in doubt when the connection breaks late', async (t) => {
    const { clocks, state, behind } = sentOne(t);
    await quiet();
    await clocks.pass(5_005);
    behind.fail(new GatewayError('OUTCOME_UNKNOWN', 'it broke'));
    await quiet();
    assert.equal((await keptOf(state))?.step, 'in-doubt');
  });
});

test('a request that waits for its turn at the deadline is not in doubt: it fails by itself, and is free again', async (t) => {
  const { clocks, state, instance } = start(t);
  const { promise, reject } = Promise.withResolvers<never>();
  const first = instance.ask(initiation({ withinMs: 5_000 }), () => promise);
  await quiet();
  await clocks.pass(5_005);
  assert.equal((await keptOf(state))?.step, 'claimed');
  reject(new GatewayError('QUEUE_TIMEOUT', 'its turn did not come'));
  assert.equal(await codeOf(first), 'QUEUE_TIMEOUT');
  assert.equal(await keptOf(state), undefined);
});
