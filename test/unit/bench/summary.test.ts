import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatComparison } from '../../../bench/format-table.ts';
import { type Run, summarise } from '../../../bench/summary.ts';

const run = (contender: string, round: number, requestsPerSecond: number, more: Partial<Run> = {}): Run => ({
  contender,
  round,
  requestsPerSecond,
  loadProfile: '32 connections',
  p50Ms: 1,
  p99Ms: 2,
  cpuMicros: 50,
  errors: 0,
  foreignShare: 0,
  ...more,
});

describe('the summary of benchmark runs', () => {
  test('computes ratios within a round, because rounds differ', () => {
    const runs = [run('ours', 1, 50), run('theirs', 1, 100), run('ours', 2, 600), run('theirs', 2, 200)];
    const [ours] = summarise([...runs, run('ours', 3, 10), run('theirs', 3, 10)], ['theirs']);
    assert.equal(ours?.throughputRatios.theirs, 1);
  });

  test('compares latencies by difference and everything else by ratio', () => {
    const runs = [run('ours', 1, 50, { p50Ms: 3, cpuMicros: 100 }), run('theirs', 1, 100)];
    const lines = summarise(runs, ['theirs']);
    assert.match(formatComparison(lines, ['theirs']), /100.0 \|\s+0.50 \|\s+2.00 \|/);
    assert.match(formatComparison(lines, ['theirs'], 'added'), /100.0 \|\s+2.000 \|/);
  });

  test('compares p99 with the baselines for which that is wanted', () => {
    const runs = [run('ours', 1, 50, { p99Ms: 6 }), run('theirs', 1, 100)];
    const lines = summarise(runs, ['theirs']);
    assert.match(
      formatComparison(lines, ['theirs'], 'multiples', ['theirs']),
      /p99 × theirs .*\n.*\n.* 3.00 \|/,
    );
    assert.doesNotMatch(formatComparison(lines, ['theirs']), /p99 ×/);
  });

  test('omits a disturbed run and reports it', () => {
    const runs = [run('ours', 1, 100), run('ours', 2, 10, { foreignShare: 0.3 })];
    const [ours] = summarise(runs, []);
    assert.equal(ours?.requestsPerSecond, 100);
    assert.equal(ours?.disturbed, 1);
  });

  test('uses disturbed runs and reports them if there are no others', () => {
    const [ours] = summarise([run('ours', 1, 10, { foreignShare: 0.3 })], []);
    assert.equal(ours?.requestsPerSecond, 10);
    assert.equal(ours?.disturbed, 1);
  });

  test('shows the errors of every run in the table', () => {
    const lines = summarise([run('ours', 1, 100), run('ours', 2, 100, { errors: 7, foreignShare: 0.3 })], []);
    assert.match(formatComparison(lines, []), /2, 1 disturbed, 7 ERRORS/);
  });

  test('shows no ratio to a baseline that did not run', () => {
    const lines = summarise([run('ours', 1, 100)], ['theirs']);
    assert.equal(lines[0]?.throughputRatios.theirs, undefined);
    assert.doesNotMatch(formatComparison(lines, ['theirs']), /theirs/);
  });
});
