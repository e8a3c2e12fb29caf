/**
 * An instance is killed, or stands still for longer than its lease, while writes are at every step of their entries in
 * the ledger; they are sent again to the other instance meanwhile and afterwards. Counted at the bank (F1, F3, H2).
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
  type WriteStage,
  writeStages,
} from '../kit/breakpoint-writes.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { printTable, together } from '../kit/table.ts';
import { until } from '../kit/within.ts';
import {
  type CrashOutcome,
  type CrashOutcomes,
  inFlight,
  killed,
  stopped,
  withoutRepeats,
} from './crash-scenarios.ts';

const life = lifeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** As long as an instance counts as alive that says nothing, and then some for a busy machine. Milliseconds. */
const leaseMs = 6_000;
const patienceMs = leaseMs + 6_000;

/** One write in one crash, as it went. */
interface Found extends CrashOutcome {
  readonly signal: string;
  readonly moment: WriteStage;
}
const found: Found[] = [];

/** Two instances of one installation, the first of which will crash, and a bank before them. */
interface Pair {
  readonly one: BreakpointGateway;
  /** The other one, which runs beside it; where only one can be, it is started now. */
  readonly other: () => Promise<Door>;
}
type Door = Pick<BreakpointGateway, 'url' | 'adminUrl'>;

/** How to start a pair, by where the state is. */
const pairs = {
  async Redis(t: TestContext, sections: Sections, breakpoints: Steps): Promise<Pair> {
    const state = { redis: await redis(), prefix: `test-${randomUUID()}:` };
    const other = await startGateway(t, sections, redisStateFactory(state.redis, state.prefix)());
    return {
      one: await startBreakpointGateway(t, { sections, state, breakpoints }),
      other: async () => other,
    };
  },
  async file(t: TestContext, sections: Sections, breakpoints: Steps): Promise<Pair> {
    const state = { file: join(temporaryFolder(t), 'state.db') };
    const other = () => startBreakpointGateway(t, { sections, state, breakpoints: {} });
    return { one: await startBreakpointGateway(t, { sections, state, breakpoints }), other };
  },
} as const;
type Steps = ReturnType<typeof breakpointsOf>;

interface Crash {
  readonly state: keyof typeof pairs;
  /** What keeps the bank from answering before it comes. */
  readonly hold: Fault;
  readonly begin: (one: BreakpointGateway) => unknown;
  readonly end: (one: BreakpointGateway) => void;
  readonly stories: CrashOutcomes;
  readonly quietStories: CrashOutcomes;
}

const kill = {
  hold: { name: 'never-answer' },
  begin: (one: BreakpointGateway) => one.kill(),
  end: () => {},
  stories: killed,
  quietStories: withoutRepeats(killed, { last: 'proper' }),
} as const;

const crashes: Readonly<Record<string, Crash>> = {
  'SIGKILL, Redis': { state: 'Redis', ...kill },
  'SIGSTOP, Redis': {
    state: 'Redis',
    hold: { name: 'latency', ms: 3_000 }, // so that the answer comes while nobody reads it
    begin: (one) => one.freeze(),
    end: (one) => one.thaw(),
    stories: stopped,
    quietStories: withoutRepeats(stopped, { first: 'proper' }),
  },
  'SIGKILL, file': { state: 'file', ...kill },
};

describe('writes at every step (H2)', { concurrency: 4 }, () => {
  for (const [signal, crash] of Object.entries(crashes)) {
    const skip = crash.state === 'Redis' && skipWithoutRedis;
    test(`are carried out once at most, whatever is repeated, when their instance gets a ${signal}`, {
      skip,
    }, async (t) => {
      const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
      const [repeated, quiet] = [await newWrites(bank), await newWrites(bank, writeStages, ['initiation'])];
      const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, idempotency: { wait: '1s' } };
      const pair = await pairs[crash.state](t, sections, breakpointsOf([...repeated, ...quiet]));
      const all = [...repeated, ...quiet];

      const firsts = await sendToStages(pair.one, bank, all, crash.hold);
      await crash.begin(pair.one);
      const other = await pair.other();

      const isQuiet = (one: StagedWrite) => quiet.includes(one);
      const storyOf = (one: StagedWrite) => (isQuiet(one) ? crash.quietStories : crash.stories)[one.moment];
      /** What a repeat of each is told at last, asked until it is what is waited for. */
      const saidToEach =
        (isAwaited: (said: WriteOutcome, one: StagedWrite) => boolean) => (one: StagedWrite) =>
          answerTo(
            () => sendWrite(other, bank, one.write),
            (said) => isAwaited(said, one),
          );
      const unlessQuiet = (ask: (one: StagedWrite) => Promise<WriteOutcome>) =>
        Promise.all(all.map((one) => (isQuiet(one) ? '-' : ask(one))));
      const doubts = () => callAdminApi(other, 'GET', '/api/in-doubt').then(({ text }) => text);

      const atOnce = await unlessQuiet(saidToEach(() => true));
      const later = await unlessQuiet(saidToEach((said) => said !== inFlight));
      const mustBeListed = all.filter((one) => storyOf(one).listedThen);
      let listedThen = '';
      await until(patienceMs, 'all that is in doubt is listed', async () => {
        listedThen = await doubts();
        return mustBeListed.every(({ write }) => listedThen.includes(write.requestId));
      });
      crash.end(pair.one);
      const first = await Promise.all(firsts);
      const last = await Promise.all(all.map(saidToEach((said, one) => said === storyOf(one).last)));

      const listed = await doubts();
      for (const [index, one] of all.entries()) {
        const { moment, write } = one;
        const story = {
          atOnce: atOnce[index],
          later: later[index],
          first: first[index],
          last: last[index],
          listedThen: listedThen.includes(write.requestId),
          listed: listed.includes(write.requestId),
          sent: write.timesReceived(),
        };
        assert.deepEqual(story, storyOf(one), `${write.name}, ${moment}`);
        assert.equal(write.effectCount() ?? story.sent, story.sent);
        found.push({ signal, moment, ...storyOf(one) });
      }
    });
  }
});

/** What is said at last to one who asks again and again, until it is what is waited for. */
async function answerTo(
  ask: () => Promise<WriteOutcome>,
  isAwaited: (said: WriteOutcome) => boolean,
): Promise<WriteOutcome> {
  let said = '';
  const asked = async () => {
    said = await ask();
    return isAwaited(said);
  };
  await until(patienceMs, 'a repeat is told what it is to be told', asked).catch(() => {});
  return said;
}

test('the table of all crashes, steps and repeats', (t) => {
  const columns: Readonly<Record<string, (story: CrashOutcome) => unknown>> = {
    'repeat at once': ({ atOnce }) => atOnce,
    'when the lease has ended': ({ later }) => later,
    'listed then': ({ listedThen }) => (listedThen ? 'yes' : 'no'),
    'the first': ({ first }) => first,
    'last repeat': ({ last }) => last,
    'at the bank': ({ sent }) => sent,
    listed: ({ listed }) => (listed ? 'yes' : 'no'),
  };
  const groups = Object.keys(crashes).flatMap((signal) =>
    writeStages.flatMap((moment) => [true, false].map((asked) => ({ signal, moment, asked }))),
  );
  const lines = groups.map(({ signal, moment, asked }) => {
    const all = found.filter(
      (one) => one.signal === signal && one.moment === moment && (one.atOnce !== '-') === asked,
    );
    return [signal, moment, ...Object.values(columns).map((of) => together(all.map(of)))];
  });
  t.diagnostic('three kinds of write for each step; and one more, where nobody repeats it before the end');
  printTable(t, [['signal', 'a write that was', ...Object.keys(columns)], ...lines]);
});
