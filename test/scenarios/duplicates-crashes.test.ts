/**
 * An instance is killed, or suspended for longer than its lease, while writes are at every stage. They are repeated to
 * the other instance during and after the crash; effects are counted at the bank (F1, F3, H2).
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { type BreakpointGateway, startBreakpointGateway } from '../kit/breakpoint-gateway.ts';
import {
  breakpointsOf,
  newWrites,
  type StagedWrite,
  sendToStages,
  sendWrite,
  type WriteOutcome,
  writeStages,
} from '../kit/breakpoint-writes.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';

import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';
import { withUpdates } from '../kit/writes.ts';
import {
  afterExpiry,
  type CrashOutcomes,
  claimDeleted,
  inFlight,
  killed,
  suspended,
  withoutRepeats,
} from './crash-scenarios.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** An instance lease expires this long after its last renewal; renewals come every second. Milliseconds. */
const leaseMs = 6_000;
const renewalMs = 1_000;
/** Longer than an instance lease, on a busy machine as well. */
const maxWaitMs = 12_000;

/** Two instances with a shared state. */
interface Pair {
  readonly crashing: BreakpointGateway;
  /** The other instance; with the state in a file, it starts after the crash. */
  readonly live: () => Promise<Pick<BreakpointGateway, 'url' | 'adminUrl'>>;
}
type Breakpoints = ReturnType<typeof breakpointsOf>;

const startPair = {
  async Redis(t: TestContext, sections: Sections, breakpoints: Breakpoints): Promise<Pair> {
    const postgres = await newMigratedPostgres();
    const state = { postgres, redis: await redis(), prefix: `test-${randomUUID()}:` };
    const former = redisStateFactory(state.redis, state.prefix)();
    const live = await startGateway(t, { ...sections, state }, former);
    return {
      crashing: await startBreakpointGateway(t, { sections, state, breakpoints }),
      live: async () => live,
    };
  },
  async file(t: TestContext, sections: Sections, breakpoints: Breakpoints): Promise<Pair> {
    const state = { file: join(temporaryFolder(t), 'state.db') };
    const live = () => startBreakpointGateway(t, { sections, state, breakpoints: {} });
    return { crashing: await startBreakpointGateway(t, { sections, state, breakpoints }), live };
  },
} as const;

interface Scenario {
  readonly state: keyof typeof startPair;
  /** Keeps the bank from responding before the crash. */
  readonly hold: Fault;
  readonly crash: (instance: BreakpointGateway) => unknown;
  readonly resume: (instance: BreakpointGateway) => void;
  readonly repeated: CrashOutcomes;
  readonly unrepeated: CrashOutcomes;
}

const kill = {
  hold: { name: 'never-answer' },
  crash: (instance: BreakpointGateway) => instance.kill(),
  resume: () => {},
  repeated: killed,
  unrepeated: withoutRepeats(killed, { last: 'succeeded' }),
} as const;

const scenarios: Readonly<Record<string, Scenario>> = {
  'its instance is killed, with the state in Redis': { state: 'Redis', ...kill },
  'its instance is suspended, with the state in Redis': {
    state: 'Redis',
    hold: { name: 'latency', ms: 3_000 }, // the response arrives during the suspension
    crash: (instance) => instance.freeze(),
    resume: (instance) => instance.thaw(),
    repeated: suspended,
    // The live instance deletes the claim of the suspended one.
    unrepeated: { ...withoutRepeats(suspended, { first: 'succeeded' }), claimed: claimDeleted },
  },
  'its instance is killed, with the state in a file': { state: 'file', ...kill },
};

describe('a write at any stage', { concurrency: 4 }, () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    const skip = scenario.state === 'Redis' && skipWithoutRedis;
    test(`is executed at most once when ${name}, whatever is repeated`, { skip }, async (t) => {
      const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
      const repeated = await newWrites(bank);
      const unrepeated = await newWrites(bank, writeStages, ['initiation']);
      const all = [...repeated, ...unrepeated];
      const sections = {
        environments: { sandbox: { baseUrl: bank.baseUrl } },
        ...withUpdates,
        idempotency: { wait: '1s' },
      };
      const pair = await startPair[scenario.state](t, sections, breakpointsOf(all));

      const pendingFirsts = await sendToStages(pair.crashing, bank, all, scenario.hold);
      const crashedAtMs = performance.now();
      await scenario.crash(pair.crashing);
      const live = await pair.live();

      const isRepeated = (write: StagedWrite) => repeated.includes(write);
      const expectedOf = (write: StagedWrite) =>
        (isRepeated(write) ? scenario.repeated : scenario.unrepeated)[write.stage];
      /** Repeats a write until the outcome is awaited; returns the last outcome. */
      const repeatUntil =
        (isAwaited: (outcome: WriteOutcome, write: StagedWrite) => boolean) => (staged: StagedWrite) =>
          lastOutcome(
            () => sendWrite(live, bank, staged.write),
            (outcome) => isAwaited(outcome, staged),
          );
      const repeatAll = (repeat: (write: StagedWrite) => Promise<WriteOutcome>) =>
        Promise.all(all.map((write) => (isRepeated(write) ? repeat(write) : '-')));
      const readInDoubt = () => callAdminApi(live, 'GET', '/api/in-doubt').then(({ text }) => text);

      const atOnce = await repeatAll(repeatUntil(() => true));
      const isLeaseExpired = performance.now() - crashedAtMs > leaseMs - renewalMs;
      const afterLease = await repeatAll(repeatUntil((outcome) => outcome !== inFlight));
      const toBeListed = all.filter((write) => expectedOf(write).listedAfterLease);
      let listedAfterLease = '';
      await until(maxWaitMs, 'all writes in doubt are listed', async () => {
        listedAfterLease = await readInDoubt();
        return toBeListed.every(({ write }) => listedAfterLease.includes(write.requestId));
      });
      scenario.resume(pair.crashing);
      const firsts = await Promise.all(pendingFirsts);
      const lasts = await Promise.all(
        all.map(repeatUntil((outcome, write) => outcome === expectedOf(write).last)),
      );
      const listed = await readInDoubt();

      for (const [index, staged] of all.entries()) {
        const { stage, write } = staged;
        const outcome = {
          atOnce: atOnce[index],
          afterLease: afterLease[index],
          listedAfterLease: listedAfterLease.includes(write.requestId),
          first: firsts[index],
          last: lasts[index],
          listed: listed.includes(write.requestId),
          timesReceived: write.timesReceived(),
        };
        const expected = expectedOf(staged);
        const isLate =
          (isLeaseExpired || scenario.state === 'file') && // a restarted instance knows at once that it is alone
          expected.atOnce === inFlight &&
          outcome.atOnce !== inFlight;
        assert.deepEqual(outcome, isLate ? afterExpiry(expected) : expected, `${write.name}, ${stage}`);
        assert.equal(write.effectCount() ?? outcome.timesReceived, outcome.timesReceived);
      }
    });
  }
});

/** The last outcome when it is awaited, or after the longest wait. */
async function lastOutcome(
  send: () => Promise<WriteOutcome>,
  isAwaited: (outcome: WriteOutcome) => boolean,
): Promise<WriteOutcome> {
  let outcome = '';
  const sendAgain = async () => {
    outcome = await send();
    return isAwaited(outcome);
  };
  await until(maxWaitMs, 'the awaited outcome', sendAgain).catch(() => {});
  return outcome;
}
