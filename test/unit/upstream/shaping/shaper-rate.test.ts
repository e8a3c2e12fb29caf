/** However many instances call a bank, and however much is asked of them: it measures the rate that was configured. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../../kit/random.ts';
import { breakable, extremesOf, startWorld, worstExcess } from './shapers.ts';

describe('three instances at 50/s, offered 1,000 calls at once', () => {
  test('call 50 times a second, and never more than the bucket holds besides', async (t) => {
    const patient = { write: 60_000, read: 60_000, status: 60_000 };
    const { time, seen, refused, call } = startWorld(t, { instances: 3, settings: { maxWait: patient } });
    for (let one = 0; one < 1_000; one++) void call({ shaper: one % 3 });
    await time.pass(20_000);

    assert.deepEqual([seen.length, refused.length], [1_000, 0]);
    const atMs = seen.map((one) => one.atMs);
    const { most, fewest } = extremesOf(atMs.slice(50), 5_000);
    t.diagnostic(`${fewest} to ${most} calls in 5 s; excess ${worstExcess(atMs, 50, 50)}`);
    assert.ok(most <= 255 && fewest >= 245);
    assert.ok(worstExcess(atMs, 50, 50) <= 1e-6);
  });
});

describe('while the state is out of reach', () => {
  test('the instances together stay within the rate, and use it', async (t) => {
    const state = breakable();
    const settings = { maxWait: { write: 60_000, read: 60_000, status: 60_000 }, expectedInstances: 3 };
    const { time, seen, call } = startWorld(t, { instances: 3, settings, stateOf: state.stateOf });
    for (let one = 0; one < 1_000; one++) void call({ shaper: one % 3 });
    await time.pass(2_000);
    state.broken = true;
    const brokenAtMs = time.now();
    await time.pass(6_000);

    const atMs = seen.map((one) => one.atMs).filter((at) => at > brokenAtMs);
    // Each instance may have one turn left that it booked together with the others.
    const excess = worstExcess(atMs, 50, 3);
    t.diagnostic(`${atMs.length} calls in 6 s; excess ${excess}`);
    assert.ok(excess <= 1e-6);
    assert.ok(atMs.length >= 285);
  });

  test('an instance that was alone shares again within a second', async (t) => {
    const state = breakable();
    const settings = { expectedInstances: 5, burst: 5 };
    const { time, seen, call } = startWorld(t, { settings, stateOf: state.stateOf });
    state.broken = true;
    for (let one = 0; one < 400; one++) void call();
    await time.pass(3_000);
    const alone = seen.length;
    assert.ok(alone >= 28 && alone <= 31, `${alone} calls in 3 s at a fifth of 50/s`);
    state.broken = false;
    await time.pass(3_000);
    assert.ok(seen.length - alone >= 100);
  });
});

test('however calls come, no span of time holds more than the bucket and the rate allow', async (t) => {
  const { time, seen, call } = startWorld(t, { instances: 3, latencyMs: 5, settings: { burst: 10 } });
  const random = seededRandom(11);
  for (let round = 0; round < 120; round++) {
    const some = random() < 0.3 ? Math.floor(random() * 30) : 1;
    const lane = random() < 0.3 ? 'write' : 'read';
    for (let one = 0; one < some; one++) void call({ lane, shaper: Math.floor(random() * 3) });
    await time.pass(Math.floor(random() * 150));
  }
  const excess = worstExcess(
    seen.map(({ atMs }) => atMs),
    50,
    10,
  );
  t.diagnostic(`${seen.length} calls, excess ${excess}`);
  // A turn comes with the next whole millisecond: at 50/s that is a twentieth of a call.
  assert.ok(seen.length > 200 && excess <= 0.05 + 1e-6);
});
