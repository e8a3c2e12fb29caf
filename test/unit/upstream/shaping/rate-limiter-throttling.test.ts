/** A bank that allows less than was configured is believed: it is left alone, and then called as fast as it can bear. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ShapingSettings } from '../../../../src/config/schema.ts';
import type { ThrottleResponse } from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { percentile } from '../../../kit/percentile.ts';
import { startLimiters } from './rate-limiter-fixture.ts';

/** A bank with a token bucket of its own; beyond it, it answers 429 with `Retry-After: 3`. */
function strictBank(perSecond: number, burst: number): (atMs: number) => ThrottleResponse {
  let tokens = burst;
  let lastMs = 0;
  return (atMs) => {
    tokens = Math.min(burst, tokens + ((atMs - lastMs) * perSecond) / 1000);
    lastMs = atMs;
    if (tokens < 1) return { status: 429, headers: [['Retry-After', '3']] };
    tokens -= 1;
    return { status: 200, headers: [] };
  };
}

describe('a bank that allows 5/s, called at 50/s', () => {
  for (const [instances, burst] of [
    [1, 1],
    [1, 5],
    [1, 10],
    [3, 5],
  ] as const) {
    test(`gets 4 to 5 a second after half a minute: instances ${instances}, at once ${burst}`, async (t) => {
      const { time, sent, call } = startLimiters(t, { instances, bank: strictBank(5, burst) });
      const startMs = time.now();
      for (let ms = 0; ms < 70_000; ms += 40) {
        void call({ lane: 'read', limiter: (ms / 40) % instances });
        if (ms % 1_000 === 0) void call({ limiter: (ms / 1_000) % instances });
        await time.pass(40);
      }

      const well = sent.filter(({ status }) => status === 200);
      const perSecond = well.filter(({ atMs }) => atMs - startMs >= 30_000).length / 40;
      const payments = well.filter(({ lane }) => lane === 'write').map(({ waitedMs }) => waitedMs);
      t.diagnostic(
        `${perSecond.toFixed(2)}/s; 429: ${sent.length - well.length}; payments ${percentile(payments, 0.5)} ms`,
      );
      assert.ok(perSecond >= 4 && perSecond <= 5.1);
      assert.ok(sent.length - well.length <= 12);
      assert.ok(payments.length >= 60 && percentile(payments, 0.5) <= 1_000, 'payments go first');
    });
  }
});

describe('while the bank wants a pause', () => {
  const tired: ThrottleResponse = { status: 503, headers: [['Retry-After', '3']] };

  /** A world whose bank has just asked for a pause of 3 s. */
  async function pausedWorld(t: TestContext, instances = 1, settings: Partial<ShapingSettings> = {}) {
    const answers = [tired];
    const world = startLimiters(t, {
      instances,
      settings,
      bank: () => answers.shift() ?? { status: 200, headers: [] },
    });
    void world.call();
    await world.time.pass(60);
    assert.equal(world.sent.length, 1);
    return world;
  }

  test('nothing is sent, by no instance; then all that could wait goes', async (t) => {
    const { time, sent, refused, call } = await pausedWorld(t, 2);
    for (const limiter of [0, 1]) void call({ limiter });
    await time.pass(2_980);
    assert.equal(sent.length, 1);
    await time.pass(20);
    assert.deepEqual([sent.length, refused.length], [3, 0]);
  });

  test('status reads are refused at once, and told how long it takes', async (t) => {
    const patient = { maxWait: { write: 10_000, read: 10_000, status: 10_000 } };
    const { time, refused, call } = await pausedWorld(t, 1, patient);
    void call({ lane: 'read' });
    void call({ lane: 'status' });
    await time.settle();
    assert.deepEqual(
      refused.map(({ code, headers }) => [code, headers]),
      [['QUEUE_TIMEOUT', [['Retry-After', '3']]]],
    );
  });

  test('a call that cannot wait for so long is refused at once, one that can is not', async (t) => {
    const { time, sent, refused, call } = await pausedWorld(t);
    void call({ deadlineMs: 2_000 });
    void call({ deadlineMs: 4_000 });
    await time.settle();
    assert.equal(refused.length, 1);
    await time.pass(3_000);
    assert.equal(sent.length, 2);
  });

  test('a turn that was booked before is not taken', async (t) => {
    const answers = [tired];
    const bank = () => answers.shift() ?? { status: 200, headers: [] };
    const { time, sent, call } = startLimiters(t, { bank, settings: { rate: 10, burst: 1 } });
    void call();
    void call();
    await time.pass(3_000);
    assert.equal(sent.length, 1);
    await time.pass(200);
    assert.equal(sent.length, 2);
  });
});
