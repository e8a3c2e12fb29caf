import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Run } from '../../../bench/compare.ts';
import { summarise } from '../../../bench/summary.ts';
import { comparisonOf } from '../../../bench/table.ts';

const run = (contender: string, round: number, requestsPerSecond: number, more: Partial<Run> = {}): Run => ({
  contender,
  round,
  requestsPerSecond,
  pressure: '32 connections',
  p50Ms: 1,
  p99Ms: 2,
  cpuMicros: 50,
  errors: 0,
  foreign: 0,
  ...more,
});

describe('what many runs come to', () => {
  test('multiples are taken within a round, for rounds differ', () => {
    const runs = [run('ours', 1, 50), run('theirs', 1, 100), run('ours', 2, 600), run('theirs', 2, 200)];
    const [ours] = summarise([...runs, run('ours', 3, 10), run('theirs', 3, 10)], ['theirs']);
    assert.equal(ours?.times.theirs, 1);
  });

  test('latencies are compared by what is added, everything else by multiples', () => {
    const runs = [run('ours', 1, 50, { p50Ms: 3, cpuMicros: 100 }), run('theirs', 1, 100)];
    const lines = summarise(runs, ['theirs']);
    assert.match(comparisonOf(lines, ['theirs']), /100.0 \|\s+0.50 \|\s+2.00 \|/);
    assert.match(comparisonOf(lines, ['theirs'], 'added'), /100.0 \|\s+2.00 \|/);
  });

  test('a disturbed run is left out, and told', () => {
    const runs = [run('ours', 1, 100), run('ours', 2, 10, { foreign: 0.3 })];
    const [ours] = summarise(runs, []);
    assert.equal(ours?.requestsPerSecond, 100);
    assert.equal(ours?.disturbed, 1);
  });

  test('where all runs were disturbed, they are shown, and told', () => {
    const [ours] = summarise([run('ours', 1, 10, { foreign: 0.3 })], []);
    assert.equal(ours?.requestsPerSecond, 10);
    assert.equal(ours?.disturbed, 1);
  });

  test('errors of any run stand in the table', () => {
    const lines = summarise([run('ours', 1, 100), run('ours', 2, 100, { errors: 7, foreign: 0.3 })], []);
    assert.match(comparisonOf(lines, []), /2, 1 disturbed, 7 ERRORS/);
  });

  test('who did not run is nobody to be compared with', () => {
    const lines = summarise([run('ours', 1, 100)], ['theirs']);
    assert.equal(lines[0]?.times.theirs, undefined);
    assert.doesNotMatch(comparisonOf(lines, ['theirs']), /theirs/);
  });
});
