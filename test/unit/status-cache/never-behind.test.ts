/** The cache is never behind what was shown, in random histories. `FUZZ_RUNS` and `FUZZ_SEED` set runs and seed. */

import { describe, test } from 'node:test';
import { callInThread } from '../../kit/call-in-thread.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { checkNeverBehind } from './check-histories.ts';

const checks = import.meta.resolve('./check-histories.ts');
const runs = Number(process.env.FUZZ_RUNS ?? 60);

describe('random histories of reads and writes of a payment whose status goes forward and back', () => {
  test('serves nothing from the cache, shared or stale that began before a different answer that a TPP has received, on two instances', (t) =>
    callInThread(t, checks, checkNeverBehind, 'reliable', seededRuns(t, runs)));

  test('serves nothing from the cache, shared or stale that began before a different answer, while the state of one instance fails at random', (t) =>
    callInThread(t, checks, checkNeverBehind, 'failing', seededRuns(t, runs)));
});
