import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CacheVerdict } from '../../../src/request/request-events.ts';
import { createLiveStats } from '../../../src/telemetry/live-stats.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

/** Figures, and their clock in seconds. */
function startFigures() {
  const clock = { second: 1_000 };
  return { clock, figures: createLiveStats(() => clock.second * 1_000) };
}

const nothing = { requests: 0, refused: 0, failed: 0, p50Ms: null, p99Ms: null };
const untouched = { hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 };

describe('the figures of a second', () => {
  test('tell whose fault an answer was: refused by the gateway, or failed by the bank', () => {
    const { figures } = startFigures();
    figures.onRequestEnd(requestRecord());
    figures.onRequestEnd(requestRecord({ status: 400 })); // the bank's own 4xx is an answer
    figures.onRequestEnd(requestRecord({ status: 503 }));
    figures.onRequestEnd(requestRecord({ status: 503, servedFrom: 'ledger' })); // told again, not failed again
    figures.onRequestEnd(failedRecord('CIRCUIT_OPEN', 503));
    figures.onRequestEnd(failedRecord('QUOTA_EXCEEDED', 429));
    const { requests, refused, failed } = figures.current();
    assert.deepEqual({ requests, refused, failed }, { requests: 6, refused: 2, failed: 1 });
  });

  test('tell how long requests took, within 5 %', () => {
    const { figures } = startFigures();
    for (let ms = 1; ms <= 1_000; ms++) figures.onRequestEnd(requestRecord({ durationMs: ms }));
    const { p50Ms, p99Ms } = figures.current();
    assert.ok(Math.abs(Number(p50Ms) - 500) <= 25, `${p50Ms}`);
    assert.ok(Math.abs(Number(p99Ms) - 990) <= 50, `${p99Ms}`);
  });

  test('survive any duration: none at all, zero, an hour', () => {
    const { figures } = startFigures();
    for (const durationMs of [undefined, 0, 3_600_000]) figures.onRequestEnd(requestRecord({ durationMs }));
    assert.equal(figures.current().requests, 3);
    assert.ok(Number(figures.current().p99Ms) > 3_000_000);
  });

  test('tell how status reads were answered', () => {
    const { figures } = startFigures();
    const verdicts: readonly CacheVerdict[] = ['hit', 'hit', 'stale', 'shared', 'miss', 'request', 'bypass'];
    for (const verdict of verdicts) figures.onRequestEnd(requestRecord({}, [{ what: 'cache', verdict }]));
    assert.deepEqual(figures.current().cache, { hit: 2, stale: 1, shared: 1, miss: 1, bypass: 2 });
  });
});

describe('the seconds that are over', () => {
  test('follow each other without a gap, the oldest first, and the running one is not among them', () => {
    const { clock, figures } = startFigures();
    figures.onRequestEnd(requestRecord());
    clock.second = 1_003;
    figures.onRequestEnd(requestRecord());
    const seconds = figures.recent();
    assert.deepEqual(
      seconds.map(({ at, requests }) => [at, requests]),
      [
        [1_000, 1],
        [1_001, 0],
        [1_002, 0],
      ],
    );
    assert.deepEqual(seconds[1], { at: 1_001, ...nothing, cache: untouched });
    assert.equal(figures.current().at, 1_003);
  });

  test('are kept for five minutes, however long nothing came', () => {
    const { clock, figures } = startFigures();
    figures.onRequestEnd(requestRecord());
    clock.second += 1_000_000;
    const seconds = figures.recent();
    assert.equal(seconds.length, 300);
    assert.equal(seconds.at(-1)?.at, clock.second - 1);
    for (let one = 0; one < 400; one++) {
      clock.second += 1;
      figures.onRequestEnd(requestRecord());
    }
    assert.equal(figures.recent().length, 300);
    assert.ok(figures.recent().every(({ requests }, index) => requests === 1 || index === 0));
  });

  test('never run backwards, though somebody sets the clock', () => {
    const { clock, figures } = startFigures();
    clock.second -= 100;
    figures.onRequestEnd(requestRecord());
    assert.deepEqual([figures.recent().length, figures.current().requests], [0, 1]);
  });
});
