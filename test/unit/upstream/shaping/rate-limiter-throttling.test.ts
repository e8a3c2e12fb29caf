/** Adaptation to a bank that answers 429 or asks for a pause. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ShapingSettings } from '../../../../src/config/schema.ts';
import type { ThrottleResponse } from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { type CallOptions, startLimiters } from './rate-limiter-fixture.ts';

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

describe('rate limiter at 50/s in front of a bank that allows 5/s', () => {
  for (const [instances, burst] of [
    [1, 1],
    [1, 5],
    [1, 10],
    [3, 5],
  ] as const) {
    test(`settles at 4 to 5 calls per second within half a minute: ${instances} instances, bank burst ${burst}`, async (t) => {
      const { time, sent, call } = startLimiters(t, { instances, bank: strictBank(5, burst) });
      const startMs = time.now();
      for (let ms = 0; ms < 70_000; ms += 40) {
        void call({ lane: 'read', payment: `${ms % 1_600}`, limiter: (ms / 40) % instances });
        if (ms % 1_000 === 0) void call({ limiter: (ms / 1_000) % instances });
        await time.pass(40);
      }

      const accepted = sent.filter(({ status }) => status === 200);
      const perSecond = accepted.filter(({ atMs }) => atMs - startMs >= 30_000).length / 40;
      const payments = accepted.filter(({ lane }) => lane === 'write').map(({ waitedMs }) => waitedMs);
      assert.ok(perSecond >= 4 && perSecond <= 5.1, `${perSecond}/s`);
      assert.ok(sent.length - accepted.length <= 20); // single payments pause before the rate is known to be too high
      const prompt = payments.filter((waitedMs) => waitedMs <= 1_000);
      assert.ok(payments.length >= 60 && prompt.length >= payments.length / 2, 'payments are sent first');
    });
  }
});

describe('rate limiter during a pause that the bank asked for', () => {
  const pauseRequest: ThrottleResponse = { status: 503, headers: [['Retry-After', '3']] };

  /** Rate limiters after the bank has asked for a pause of 3 s. */
  async function startPaused(
    t: TestContext,
    instances = 1,
    settings: Partial<ShapingSettings> = {},
    refused: readonly CallOptions[] = [{}],
  ) {
    const responses = refused.map(() => pauseRequest);
    const fixture = startLimiters(t, {
      instances,
      settings,
      bank: () => responses.shift() ?? { status: 200, headers: [] },
    });
    for (const options of refused) void fixture.call(options);
    await fixture.time.pass(60);
    assert.equal(fixture.sent.length, refused.length);
    return fixture;
  }

  test('sends nothing from any instance, and continues with the queued calls afterwards', async (t) => {
    const { time, sent, refused, call } = await startPaused(t, 2);
    for (const limiter of [0, 1]) void call({ limiter });
    await time.pass(2_980);
    assert.equal(sent.length, 1);
    await time.pass(20);
    assert.deepEqual([sent.length, refused.length], [3, 0]);
  });

  test('refuses status reads immediately, with the rest of the pause in Retry-After and RateLimit', async (t) => {
    const patient = { maxWait: { write: 10_000, read: 10_000, status: 10_000 } };
    const payment = 'one';
    const both = [
      { lane: 'read', payment },
      { lane: 'status', payment },
    ] as const;
    const { time, refused, call } = await startPaused(t, 1, patient, both);
    for (const options of both) void call(options);
    await time.settle();
    const headers = [
      ['Retry-After', '3'],
      ['RateLimit', '"bank-payment";r=0;t=3'],
    ];
    assert.deepEqual(
      refused.map(({ lane, code, headers }) => [lane, code, headers]),
      [['status', 'QUEUE_TIMEOUT', headers]],
    );
  });

  test('sends calls outside of the pause at once, also past calls that wait for its end', async (t) => {
    const { time, sent, call } = await startPaused(t, 1, {}, [{ product: 'instant' }]);
    void call({ product: 'instant' });
    void call({ product: 'transfers' });
    await time.settle();
    assert.deepEqual(sent.at(-1)?.waitedMs, 0);
    assert.equal(sent.length, 2);
    await time.pass(3_000);
    assert.equal(sent.length, 3);
  });

  test('refuses a call immediately if its deadline is within the pause', async (t) => {
    const { time, sent, refused, call } = await startPaused(t);
    void call({ deadlineMs: 2_000 });
    void call({ deadlineMs: 4_000 });
    await time.settle();
    assert.equal(refused.length, 1);
    await time.pass(3_000);
    assert.equal(sent.length, 2);
  });

  test('sends no queued call of a limiter that was closed before the pause', async (t) => {
    const responses = [pauseRequest];
    const bank = () => responses.shift() ?? { status: 200, headers: [] };
    const { time, sent, limiters, call } = startLimiters(t, { bank, settings: { rate: 10, burst: 1 } });
    limiters[0]?.close();
    void call();
    void call();
    await time.pass(2_900);
    assert.equal(sent.length, 1);
    await time.pass(400);
    assert.equal(sent.length, 2);
  });

  test('does not use a permit that was reserved before the pause', async (t) => {
    const responses = [pauseRequest];
    const bank = () => responses.shift() ?? { status: 200, headers: [] };
    const { time, sent, call } = startLimiters(t, { bank, settings: { rate: 10, burst: 1 } });
    void call();
    void call();
    await time.pass(3_000);
    assert.equal(sent.length, 1);
    await time.pass(200);
    assert.equal(sent.length, 2);
  });
});
