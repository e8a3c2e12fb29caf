import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCores, parseProcess } from '../../../bench/measure/proc.ts';

/** As Linux writes it: pid, name, state, parent, ...; 14th to 17th: user, system, and the same of ended children. */
const stat = (name: string) =>
  `42 (${name}) S 7 42 42 0 -1 4194304 102 0 0 0 120 30 5 1 20 0 11 0 94173 3133440 417`;

describe('the /proc parser of the benchmark', () => {
  test('adds user and kernel time of a process, and separately of its terminated children', () => {
    assert.deepEqual(parseProcess(stat('node'), 10), { parent: 7, cpuMs: 1_500, childrenMs: 60 });
  });

  test('parses a process name with spaces and parentheses', () => {
    assert.deepEqual(parseProcess(stat('a) S 1 (b'), 10), parseProcess(stat('node'), 10));
  });

  test('counts only time of processes as busy, and steal time separately', () => {
    const text =
      'cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 4000 50 6 7 8 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 5\n';
    const cores = parseCores(text, 10);
    assert.deepEqual(cores.get(0), { busyMs: 1_500, stolenMs: 80 });
    assert.deepEqual([...cores.keys()], [0, 1]);
  });
});
