import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { reservePermit, takeResultOf } from '../../../src/state/token-bucket.ts';
import { tokenBucketCases } from './token-bucket-cases.ts';

describe('a token bucket', () => {
  for (const { name, requests } of tokenBucketCases) {
    test(name, () => {
      let arrivalMs: number | undefined;
      for (const [atMs, rate, maxWaitMs, waitMs] of requests) {
        const turn = reservePermit(arrivalMs, atMs, rate, maxWaitMs);
        assert.equal(turn?.waitMs, waitMs);
        arrivalMs = turn?.theoreticalArrivalMs ?? arrivalMs;
      }
    });
  }

  const rates = fc.record({
    perSecond: fc.double({ min: 0.01, max: 1_000, noNaN: true }),
    burst: fc.integer({ min: 1, max: 100 }),
  });
  const gapsMs = fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { minLength: 1, maxLength: 200 });
  const maxWaits = fc.double({ min: 0, max: 5_000, noNaN: true });

  test('in any span of time no more turns come than the bucket holds and the rate brings', () => {
    fc.assert(
      fc.property(rates, gapsMs, maxWaits, (rate, gaps, maxWaitMs) => {
        const turns = turnsAfter(gaps, rate, maxWaitMs);
        for (const [first, start] of turns.entries()) {
          for (const [more, end] of turns.slice(first).entries()) {
            const allowed = rate.burst + ((end - start) * rate.perSecond) / 1000;
            assert.ok(more + 1 <= allowed + 1e-6, `${more + 1} turns in ${end - start} ms`);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  test('as many turns can be taken as are said to be left, and no more', () => {
    fc.assert(
      fc.property(rates, gapsMs, (rate, gaps) => {
        let nowMs = 0;
        let arrivalMs: number | undefined;
        let left = rate.burst;
        for (const gapMs of [0, ...gaps]) {
          nowMs += gapMs;
          const turn = reservePermit(arrivalMs, nowMs, rate, 0);
          if (gapMs === 0) assert.equal(turn !== undefined, left > 0);
          arrivalMs = turn?.theoreticalArrivalMs ?? arrivalMs ?? nowMs;
          const taking = takeResultOf(turn !== undefined, Math.max(0, arrivalMs - nowMs), rate);
          assert.equal(taking.nextPermitMs > 0, taking.remaining === 0);
          assert.ok(
            taking.remaining < rate.burst || (taking.remaining === rate.burst && taking.fullInMs === 0),
          );
          left = taking.remaining;
        }
      }),
    );
  });

  test('turns come in the order in which they were asked for, and nobody waits longer than he can', () => {
    fc.assert(
      fc.property(rates, gapsMs, maxWaits, (rate, gaps, maxWaitMs) => {
        const turns = turnsAfter(gaps, rate, maxWaitMs);
        assert.deepEqual(
          turns,
          turns.toSorted((one, other) => one - other),
        );
      }),
    );
  });
});

/** When the turns come that are asked for after these gaps. */
function turnsAfter(
  gapsMs: readonly number[],
  rate: Parameters<typeof reservePermit>[2],
  maxWaitMs: number,
): readonly number[] {
  const turns: number[] = [];
  let nowMs = 0;
  let arrivalMs: number | undefined;
  for (const gapMs of gapsMs) {
    nowMs += gapMs;
    const turn = reservePermit(arrivalMs, nowMs, rate, maxWaitMs);
    if (!turn) continue;
    assert.ok(turn.waitMs >= 0 && turn.waitMs <= maxWaitMs);
    turns.push(nowMs + turn.waitMs);
    arrivalMs = turn.theoreticalArrivalMs;
  }
  return turns;
}
