import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { reservePermit, takeResultOf } from '../../../src/state/token-bucket.ts';
import { tokenBucketCases } from './token-bucket-cases.ts';

describe('token bucket arithmetic', () => {
  for (const { name, requests } of tokenBucketCases) {
    test(name, () => {
      let arrivalMs: number | undefined;
      for (const [atMs, rate, maxWaitMs, waitMs] of requests) {
        const permit = reservePermit(arrivalMs, atMs, rate, maxWaitMs);
        assert.equal(permit?.waitMs, waitMs);
        arrivalMs = permit?.theoreticalArrivalMs ?? arrivalMs;
      }
    });
  }

  const rates = fc.record({
    perSecond: fc.double({ min: 0.01, max: 1_000, noNaN: true }),
    burst: fc.integer({ min: 1, max: 100 }),
  });
  const gapsMs = fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { minLength: 1, maxLength: 200 });
  const maxWaits = fc.double({ min: 0, max: 5_000, noNaN: true });

  test('no time span contains more permits than the burst plus what the rate adds', () => {
    fc.assert(
      fc.property(rates, gapsMs, maxWaits, (rate, gaps, maxWaitMs) => {
        const permits = permitTimes(gaps, rate, maxWaitMs);
        for (const [first, start] of permits.entries()) {
          for (const [more, end] of permits.slice(first).entries()) {
            const allowed = rate.burst + ((end - start) * rate.perSecond) / 1000;
            assert.ok(more + 1 <= allowed + 1e-6, `${more + 1} permits in ${end - start} ms`);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  test('exactly as many permits can be taken as the result says remain, except for rounding', () => {
    fc.assert(
      fc.property(rates, gapsMs, (rate, gaps) => {
        const roundingMs = (1_000 / rate.perSecond) * 1e-6;
        let nowMs = 0;
        let arrivalMs: number | undefined;
        let remaining = rate.burst;
        for (const gapMs of [0, ...gaps]) {
          nowMs += gapMs;
          const permit = reservePermit(arrivalMs, nowMs, rate, roundingMs);
          if (gapMs === 0) assert.equal(permit !== undefined, remaining > 0);
          arrivalMs = permit?.theoreticalArrivalMs ?? arrivalMs ?? nowMs;
          const result = takeResultOf(permit !== undefined, Math.max(0, arrivalMs - nowMs), rate);
          assert.equal(result.nextPermitMs > 0, result.remaining === 0);
          const isFull = result.remaining === rate.burst && result.fullInMs <= roundingMs;
          assert.ok(result.remaining < rate.burst || isFull);
          remaining = result.remaining;
        }
      }),
      { examples: [[{ perSecond: 2.001498964422796, burst: 1 }, [499.6250399202108, 0]]] },
    );
  });

  test('a bucket keeps its reservations if callers accept different waits and the rate is lowered in between', () => {
    const maxWaitMs = 10_000;
    const configured = fc.record({
      perSecond: fc.double({ min: 0.2, max: 1_000, noNaN: true }),
      burst: fc.integer({ min: 1, max: 100 }),
    });
    const lowered = fc.double({ min: 0.1, max: 1, noNaN: true });
    const requests = fc.array(
      fc.record({
        gapMs: fc.double({ min: 0, max: 500, noNaN: true }),
        loweredTo: fc.option(lowered, { nil: undefined }),
        acceptedMs: fc.constantFrom(0, 1_000, maxWaitMs),
      }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(configured, requests, (rate, all) => {
        const longestAheadMs = maxWaitMs + (rate.burst * 1_000) / rate.perSecond;
        const waitsWith = (bound: number) => {
          let nowMs = 0;
          let arrivalMs: number | undefined;
          return all.map(({ gapMs, loweredTo, acceptedMs }) => {
            nowMs += gapMs;
            const perSecond = loweredTo && Math.max(0.1, loweredTo * rate.perSecond);
            const current = perSecond === undefined ? rate : { perSecond, burst: 1 };
            const permit = reservePermit(arrivalMs, nowMs, { ...current, longestAheadMs: bound }, acceptedMs);
            arrivalMs = permit?.theoreticalArrivalMs ?? arrivalMs;
            return permit?.waitMs;
          });
        };
        assert.deepEqual(waitsWith(longestAheadMs), waitsWith(Number.POSITIVE_INFINITY));
      }),
    );
  });

  test('permits are issued in the order of the requests, and never later than the longest acceptable wait', () => {
    fc.assert(
      fc.property(rates, gapsMs, maxWaits, (rate, gaps, maxWaitMs) => {
        const permits = permitTimes(gaps, rate, maxWaitMs);
        assert.deepEqual(
          permits,
          permits.toSorted((one, other) => one - other),
        );
      }),
    );
  });
});

/** The times of the permits for requests with these gaps between them. */
function permitTimes(
  gapsMs: readonly number[],
  rate: Parameters<typeof reservePermit>[2],
  maxWaitMs: number,
): readonly number[] {
  const times: number[] = [];
  let nowMs = 0;
  let arrivalMs: number | undefined;
  for (const gapMs of gapsMs) {
    nowMs += gapMs;
    const permit = reservePermit(arrivalMs, nowMs, rate, maxWaitMs);
    if (!permit) continue;
    assert.ok(permit.waitMs >= 0 && permit.waitMs <= maxWaitMs);
    times.push(nowMs + permit.waitMs);
    arrivalMs = permit.theoreticalArrivalMs;
  }
  return times;
}
