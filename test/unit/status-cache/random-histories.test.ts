/** Monotonic reads and read-your-writes in random histories. `FUZZ_RUNS` and `FUZZ_SEED` set runs and seed. */

import { describe, test } from 'node:test';
import { callInThread } from '../../kit/call-in-thread.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { checkMonotonicReads, checkMonotonicReadsWithFailures } from './check-histories.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 60);
const checks = import.meta.resolve('./check-histories.ts');

describe('random histories of reads, cancellations, authorisations and status changes at the bank', () => {
  test('never serves a TPP a status older than one it has seen or than its own write, on two instances', (t) =>
    callInThread(t, checks, checkMonotonicReads, seededRuns(t, runs)));

  test('never serves a TPP an older status while the state fails at random', (t) =>
    callInThread(t, checks, checkMonotonicReadsWithFailures, seededRuns(t, runs)));
});
