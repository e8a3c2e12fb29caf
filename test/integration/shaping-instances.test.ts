/** Five instances on one Redis: the rate limits their sum, and payments of any instance go before polls of another. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ShapingSettings } from '../../src/config/schema.ts';
import type { Lane } from '../../src/pis/operations.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createAdaptiveRate } from '../../src/upstream/shaping/adaptive-rate.ts';
import { createPermitSources } from '../../src/upstream/shaping/permits.ts';
import { createRateLimiter, type RateLimiter } from '../../src/upstream/shaping/rate-limiter.ts';
import { excessMs } from '../kit/arrivals.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const url = skipWithoutRedis ? '' : await sharedRedisUrl(scopeOfAllTests());
const instances = 5;
/** As long as an instance may use permits that it has already leased. */
const longestLeaseMs = 200;
/** Of the machine that runs the tests: sends may be delayed, and then come closer together. */
const stallMs = 250;

interface SentCall {
  readonly lane: Lane;
  readonly queuedAtMs: number;
  readonly sentAtMs: number;
}

async function startLimiters(t: TestContext, settings: ShapingSettings) {
  const sent: SentCall[] = [];
  const create = redisStateFactory(url);
  const limiters: RateLimiter[] = [];
  for (let index = 0; index < instances; index++) {
    const state = create();
    t.after(() => state.close());
    await state.open();
    const telemetry = { log: () => {}, metrics: createMetrics() };
    const counts = { instances: () => instances, expectedInstances: () => instances };
    const permits = createPermitSources(state.tokenBuckets, { ...counts, telemetry }).of('sandbox');
    const rate = { perSecond: settings.rate, burst: settings.burst };
    const adaptiveRate = createAdaptiveRate('sandbox', rate, state);
    limiters.push(createRateLimiter(settings, { permits, adaptiveRate }));
  }

  /** Keeps so many calls waiting on an instance. @returns stops that */
  function flood(index: number, lane: Lane, width: number): () => void {
    let isOver = false;
    const next = async (): Promise<void> => {
      const queuedAtMs = performance.now();
      const call = { lane, tenant: 'shop', deadlineAtMs: queuedAtMs + 120_000 };
      await limiters[index]?.run(call, async () => {
        sent.push({ lane, queuedAtMs, sentAtMs: performance.now() });
        return { status: 200, headers: [] };
      });
      if (!isOver) return next();
    };
    for (let one = 0; one < width; one++) next().catch(() => {});
    return () => {
      isOver = true;
    };
  }

  return { sent, flood };
}

const countOf = (sent: readonly SentCall[], wanted: Lane) =>
  sent.filter(({ lane }) => lane === wanted).length;

describe('five instances on one Redis', { skip: skipWithoutRedis, concurrency: true }, () => {
  for (const [rate, burst] of [
    [2, 1],
    [10, 1],
    [50, 10],
    [200, 20],
  ] as const) {
    test(`send no poll while a payment of another instance waits, and keep the rate: ${rate}/s`, async (t) => {
      const maxWait = { write: 120_000, read: 120_000, status: 120_000 };
      const limits = {
        maxConcurrent: 100,
        reserve: 0.1,
        queue: 1_000,
        maxWait,
        expectedInstances: instances,
      };
      const { sent, flood } = await startLimiters(t, { rate, burst, ...limits });
      const stopPolls = [0, 1, 2].map((index) => flood(index, 'status', 20));
      const enough = Math.max(6, rate / 2);
      await until(30_000, 'polls are sent', () => countOf(sent, 'status') >= enough);
      const stopPayments = [flood(3, 'write', 5), flood(4, 'write', 1)];
      await until(30_000, 'payments are sent', () => countOf(sent, 'write') >= enough);
      for (const stop of stopPayments) stop();
      const before = countOf(sent, 'status');
      await until(30_000, 'polls are sent again', () => countOf(sent, 'status') >= before + enough);
      for (const stop of stopPolls) stop();

      const payments = sent.filter(({ lane }) => lane === 'write');
      for (const { lane, sentAtMs } of sent) {
        const waiting = payments.filter(
          (payment) =>
            payment.queuedAtMs < sentAtMs - longestLeaseMs - stallMs && payment.sentAtMs > sentAtMs,
        );
        if (lane !== 'write') assert.equal(waiting.length, 0, `a poll overtook ${waiting.length} payments`);
      }
      const times = sent.map(({ sentAtMs }) => sentAtMs);
      assert.ok(excessMs(times, { perSecond: rate, burst }) <= stallMs);
      const lastMs = times.at(-1) ?? 0;
      const usable = (rate * (lastMs - (times[0] ?? 0))) / 1_000;
      assert.ok(sent.length >= 0.8 * usable, `${sent.length} of ${usable} calls: the rate is used`);
    });
  }
});
