/** The promise "never pay twice", checked in random simulations of whole deployments. `FUZZ_RUNS` sets their number. */

import { describe, type TestContext, test } from 'node:test';
import { callInThread } from '../../kit/call-in-thread.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { checkRandomDeployments } from './simulation/random-deployments.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 100);
/** A slow or busy machine makes fewer runs than wanted, unless their number was set. Milliseconds. */
const maxMs = process.env.FUZZ_RUNS === undefined ? 20_000 : Number.POSITIVE_INFINITY;
const simulations = import.meta.resolve('./simulation/random-deployments.ts');

async function check(t: TestContext, state: 'reliable' | 'forgetful'): Promise<void> {
  const settings = seededRuns(t, runs);
  const complete = await callInThread(t, simulations, checkRandomDeployments, state, settings, maxMs);
  t.diagnostic(`${complete} runs`);
}

describe('a random sequence of payments, repeats, crashes, suspensions, state failures and resolutions', () => {
  test('makes at most one payment per X-Request-ID, and every outcome is reported or listed as in doubt', (t) =>
    check(t, 'reliable'));

  test('makes at most one payment per X-Request-ID although the state loses its last changes, a partition or everything', (t) =>
    check(t, 'forgetful'));
});
