/** How long a call waits, what ends its waiting, and what it costs not to wait. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { State } from '../../../../src/state/ports.ts';
import { startWorld } from './shapers.ts';

/** Counts how often the state is asked for a turn. */
function counting() {
  const count = { asked: 0 };
  const stateOf = (state: State): State => ({
    ...state,
    reservations: {
      ...state.reservations,
      reserve: (...all) => {
        count.asked += 1;
        return state.reservations.reserve(...all);
      },
    },
  });
  return { count, stateOf };
}

describe('a call that need not wait', () => {
  test('costs one question to the state and no timer', async (t) => {
    const { count, stateOf } = counting();
    const { time, seen, call } = startWorld(t, { stateOf, latencyMs: 0 });
    const timers = t.mock.method(globalThis, 'setTimeout');
    await call();
    await time.settle();
    assert.deepEqual([seen.length, count.asked, timers.mock.callCount()], [1, 1, 0]);
  });

  test('costs one question each where many come at once', async (t) => {
    const { count, stateOf } = counting();
    const { seen, call } = startWorld(t, { stateOf, latencyMs: 0 });
    await Promise.all(Array.from({ length: 50 }, () => call()));
    assert.deepEqual([seen.length, count.asked], [50, 50]);
  });
});

test('an empty bucket is asked about twice a turn at most, however many wait', async (t) => {
  const { count, stateOf } = counting();
  const { time, seen, call } = startWorld(t, { stateOf, settings: { burst: 1 } });
  for (let one = 0; one < 500; one++) void call();
  await time.pass(5_000);
  assert.equal(seen.length, 251);
  assert.ok(count.asked <= 2 * seen.length, `asked ${count.asked} times`);
});

describe('a call that waits', () => {
  const slow = { rate: 1, burst: 1 };

  test('is refused at once if the next turn comes later than anybody may wait', async (t) => {
    const maxWait = { write: 900, read: 500, status: 200 };
    const { time, refused, call } = startWorld(t, { settings: { rate: 1, burst: 2, maxWait } });
    for (const lane of ['write', 'write', 'write', 'read'] as const) void call({ lane });
    await time.settle();
    assert.deepEqual(refused.map(({ lane, code }) => `${lane} ${code}`).toSorted(), [
      'read QUEUE_TIMEOUT',
      'write QUEUE_TIMEOUT',
    ]);
  });

  test('waits for as long as its lane may, and no longer', async (t) => {
    const maxWait = { write: 5_000, read: 500, status: 200 };
    const { time, refused, call } = startWorld(t, { settings: { ...slow, maxWait } });
    void call();
    for (const lane of ['read', 'status'] as const) void call({ lane });
    const codes = () => refused.map(({ lane, code }) => `${lane} ${code}`);
    await time.pass(199);
    assert.deepEqual(codes(), []);
    await time.pass(1);
    assert.deepEqual(codes(), ['status QUEUE_TIMEOUT']);
    await time.pass(300);
    assert.deepEqual(codes(), ['status QUEUE_TIMEOUT', 'read QUEUE_TIMEOUT']);
  });

  test('is refused when its deadline comes: the time in the line is no time of the bank', async (t) => {
    const { time, seen, refused, call } = startWorld(t, { settings: slow });
    void call();
    void call({ deadlineMs: 300 });
    await time.pass(300);
    assert.deepEqual([seen.length, refused[0]?.code], [1, 'QUEUE_TIMEOUT']);
  });

  test('is dropped when its TPP leaves, and its turn goes to the next', async (t) => {
    const { time, seen, refused, call } = startWorld(t, { settings: slow });
    const tpp = new AbortController();
    void call();
    void call({ tenant: 'leaves', signal: tpp.signal });
    void call({ tenant: 'stays' });
    await time.pass(500);
    tpp.abort();
    await time.pass(600);
    assert.deepEqual(
      seen.map(({ tenant }) => tenant),
      ['tenant', 'stays'],
    );
    assert.equal(refused.length, 1);
  });

  test('goes on if its TPP leaves after it was sent', async (t) => {
    const { time, seen, refused, call } = startWorld(t, { latencyMs: 100 });
    const tpp = new AbortController();
    const done = call({ signal: tpp.signal });
    await time.pass(50);
    tpp.abort();
    await time.pass(60);
    await done;
    assert.deepEqual([seen.length, refused.length], [1, 0]);
  });

  test('is overtaken by a payment that comes when its turn is booked already', async (t) => {
    const { time, seen, call } = startWorld(t, { settings: slow });
    void call();
    void call({ lane: 'status' });
    await time.pass(900);
    void call({ lane: 'write', tenant: 'late' });
    await time.pass(100);
    assert.equal(seen[1]?.tenant, 'late');
  });
});

test('no more calls are under way than may be, and a slot that is free goes to a payment', async (t) => {
  const { time, seen, shapers, call } = startWorld(t, { settings: { maxConcurrent: 2 }, latencyMs: 100 });
  for (const lane of ['read', 'read', 'status', 'read', 'write'] as const) void call({ lane });
  await time.pass(50);
  assert.deepEqual([seen.length, shapers[0]?.view().running], [2, 2]);
  await time.pass(60);
  assert.deepEqual([seen.length, shapers[0]?.view().running], [4, 2]);
  assert.deepEqual(
    seen.map(({ lane }) => lane),
    ['write', 'read', 'read', 'read'],
  );
});

test('a slot comes back from a call that fails', async (t) => {
  const { time, shapers } = startWorld(t, { settings: { maxConcurrent: 1 } });
  const fails = () => Promise.reject(new Error('the bank is away'));
  const one = { lane: 'write', tenant: 'tenant', deadlineAtMs: Number.POSITIVE_INFINITY } as const;
  for (let tries = 0; tries < 3; tries++) {
    await assert.rejects(shapers[0]?.run(one, fails) ?? Promise.resolve(), /away/);
  }
  await time.settle();
  assert.equal(shapers[0]?.view().running, 0);
});

test('a call too many is refused at once', async (t) => {
  const { time, refused, call } = startWorld(t, { settings: { rate: 1, burst: 1, queue: 3 } });
  for (let one = 0; one < 5; one++) void call({ lane: 'status' });
  await time.settle();
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['QUEUE_FULL', 'QUEUE_FULL'],
  );
});
