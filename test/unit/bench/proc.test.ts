import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCores, parseProcess } from '../../../bench/measure/proc.ts';

/** As Linux writes it: pid, name, state, parent, ...; 14th to 17th: user, system, and the same of ended children. */
const stat = (name: string) =>
  `42 (${name}) S 7 42 42 0 -1 4194304 102 0 0 0 120 30 5 1 20 0 11 0 94173 3133440 417`;

describe('what Linux says of the CPU', () => {
  test('a process has used its time in user and kernel, and its ended children theirs', () => {
    assert.deepEqual(parseProcess(stat('node'), 10), { parent: 7, cpuMs: 1_500, childrenMs: 60 });
  });

  test('a process may be called as it likes', () => {
    assert.deepEqual(parseProcess(stat('a) S 1 (b'), 10), parseProcess(stat('node'), 10));
  });

  test('a core was busy with processes; idling, waiting and interrupts are not counted, stolen time apart', () => {
    const text =
      'cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 4000 50 6 7 8 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 5\n';
    const cores = parseCores(text, 10);
    assert.deepEqual(cores.get(0), { busyMs: 1_500, stolenMs: 80 });
    assert.deepEqual([...cores.keys()], [0, 1]);
  });
});
