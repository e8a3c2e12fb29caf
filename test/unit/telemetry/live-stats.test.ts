import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable } from '../../../src/request/errors.ts';
import type { CacheVerdict } from '../../../src/request/request-events.ts';
import {
  createLiveStats,
  emptySecond,
  statsOfCounts,
  sumOfCounts,
} from '../../../src/telemetry/live-stats.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

/** Statistics with a clock in seconds. `finishSecond` returns the statistics of the second that it ends. */
function startStats() {
  const clock = { second: 1_000 };
  const stats = createLiveStats(() => clock.second * 1_000);
  const finishSecond = () => {
    clock.second += 1;
    return statsOfCounts(stats.recent().at(-1) ?? assert.fail());
  };
  return { clock, stats, finishSecond };
}

describe('the statistics of a second', () => {
  test('distinguish requests that the gateway refused from calls to the bank that failed', () => {
    const { stats, finishSecond } = startStats();
    stats.onRequestEnd(requestRecord());
    stats.onRequestEnd(requestRecord({ status: 400 })); // a 4xx of the bank is neither
    stats.onRequestEnd(requestRecord({ status: 503 }));
    stats.onRequestEnd(requestRecord({ status: 503, servedFrom: 'ledger' })); // a replay is not a new failure
    stats.onRequestEnd(failedRecord('CIRCUIT_OPEN', 503));
    stats.onRequestEnd(failedRecord('QUOTA_EXCEEDED', 429));
    for (const code of ['UPSTREAM_UNREACHED', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN'] as const)
      stats.onRequestEnd(failedRecord(code, errorTable[code].status));
    const { requests, refused, failed } = finishSecond();
    assert.deepEqual({ requests, refused, failed }, { requests: 9, refused: 2, failed: 4 });
  });

  test('count a 404 neither as refused nor as failed, whether the gateway or the bank sent it', () => {
    const { stats, finishSecond } = startStats();
    stats.onRequestEnd(requestRecord({ status: 404 }));
    stats.onRequestEnd(failedRecord('PAYMENT_UNKNOWN', 404));
    stats.onRequestEnd(failedRecord('PATH_UNKNOWN', 404));
    const { requests, refused, failed } = finishSecond();
    assert.deepEqual({ requests, refused, failed }, { requests: 3, refused: 0, failed: 0 });
  });

  test('contain the median and the 99th percentile of the duration within 5 %', () => {
    const { stats, finishSecond } = startStats();
    for (let ms = 1; ms <= 1_000; ms++) stats.onRequestEnd(requestRecord({ durationMs: ms }));
    const { p50Ms, p99Ms } = finishSecond();
    assert.ok(Math.abs(Number(p50Ms) - 500) <= 25, `${p50Ms}`);
    assert.ok(Math.abs(Number(p99Ms) - 990) <= 50, `${p99Ms}`);
  });

  test('accept any duration: unknown, zero, an hour', () => {
    const { stats, finishSecond } = startStats();
    for (const durationMs of [undefined, 0, 3_600_000]) stats.onRequestEnd(requestRecord({ durationMs }));
    const { requests, p99Ms } = finishSecond();
    assert.equal(requests, 3);
    assert.ok(Number(p99Ms) > 3_000_000);
  });

  test('count status reads by how they were answered', () => {
    const { stats, finishSecond } = startStats();
    const verdicts: readonly CacheVerdict[] = ['hit', 'hit', 'stale', 'shared', 'miss', 'request', 'bypass'];
    for (const verdict of verdicts) stats.onRequestEnd(requestRecord({}, [{ what: 'cache', verdict }]));
    assert.deepEqual(finishSecond().cache, { hit: 2, stale: 1, shared: 1, miss: 1, bypass: 2 });
  });
});

describe('the finished seconds', () => {
  test('have no gaps, begin with the oldest, and exclude the current second', () => {
    const { clock, stats } = startStats();
    stats.onRequestEnd(requestRecord());
    clock.second = 1_003;
    stats.onRequestEnd(requestRecord());
    const seconds = stats.recent();
    assert.deepEqual(
      seconds.map(({ at, requests }) => [at, requests]),
      [
        [1_000, 1],
        [1_001, 0],
        [1_002, 0],
      ],
    );
    const empty = seconds[1] ?? assert.fail();
    assert.deepEqual(empty, emptySecond(1_001));
    assert.deepEqual(statsOfCounts(empty), {
      ...{ at: 1_001, requests: 0, refused: 0, failed: 0, p50Ms: null, p99Ms: null },
      cache: { hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 },
    });
  });

  test('cover five minutes, also after a long time without requests', () => {
    const { clock, stats } = startStats();
    stats.onRequestEnd(requestRecord());
    clock.second += 1_000_000;
    const seconds = stats.recent();
    assert.equal(seconds.length, 300);
    assert.equal(seconds.at(-1)?.at, clock.second - 1);
    for (let one = 0; one < 400; one++) {
      clock.second += 1;
      stats.onRequestEnd(requestRecord());
    }
    assert.equal(stats.recent().length, 300);
    assert.ok(stats.recent().every(({ requests }, index) => requests === 1 || index === 0));
  });

  test('continue from the same second if the clock is set back', () => {
    const { clock, stats } = startStats();
    clock.second -= 100;
    stats.onRequestEnd(requestRecord());
    assert.deepEqual(stats.recent(), []);
    clock.second = 1_001;
    assert.deepEqual(
      stats.recent().map(({ at, requests }) => [at, requests]),
      [[1_000, 1]],
    );
  });
});

test('the sum of several instances has the counts and durations of all their requests', () => {
  const [one, other, both] = [startStats(), startStats(), startStats()];
  for (let ms = 1; ms <= 400; ms++) {
    const record = requestRecord({ durationMs: ms ** 1.5 }, [{ what: 'cache', verdict: 'hit' }]);
    (ms % 7 === 0 ? one : other).stats.onRequestEnd(record);
    both.stats.onRequestEnd(record);
  }
  one.stats.onRequestEnd(failedRecord('CIRCUIT_OPEN', 503));
  both.stats.onRequestEnd(failedRecord('CIRCUIT_OPEN', 503));
  const [ofOne, ofOther, ofBoth] = [one, other, both].map(({ clock, stats }) => {
    clock.second += 1;
    return stats.recent().at(-1) ?? assert.fail();
  });
  assert.ok(ofOne && ofOther && ofBoth);
  assert.deepEqual(sumOfCounts(1_000, [ofOne, ofOther]), ofBoth);
});
