/** A single instance, with its state in memory or in a file, is suspended and resumed while it executes writes (H2). */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { startBreakpointGateway } from '../kit/breakpoint-gateway.ts';
import type { BreakpointGatewayOptions } from '../kit/breakpoint-process.ts';
import {
  breakpointsOf,
  newWrites,
  sendToStages,
  sendWrite,
  type WriteOutcome,
  type WriteStage,
} from '../kit/breakpoint-writes.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { within } from '../kit/within.ts';
import { withUpdates } from '../kit/writes.ts';

/** The outcomes of the first request and of the repeat that arrives while the instance is suspended. */
type Outcomes = readonly [first: WriteOutcome, repeat: WriteOutcome];

const replayed: Outcomes = ['succeeded', 'replayed'];
const expected: Readonly<Record<WriteStage, Outcomes>> = {
  'before the claim': ['replayed', 'succeeded'], // in alphabetical order, see below
  claimed: replayed,
  sending: ['503 STATE_UNAVAILABLE', 'succeeded'], // the write-ahead mark is older than a second, so nothing is sent
  'at the bank': replayed,
  answered: replayed,
  stored: replayed,
};

const stateOptions: Readonly<Record<string, (t: TestContext) => BreakpointGatewayOptions['state']>> = {
  memory: () => 'memory',
  'a file': (t) => ({ file: join(temporaryFolder(t), 'state.db') }),
};

/** Longer than an instance lease. */
const suspensionMs = 6_500;

describe('a suspended single instance', { concurrency: 4 }, () => {
  for (const [where, stateOption] of Object.entries(stateOptions)) {
    test(`executes every write at most once, whatever stage the write had reached: state in ${where}`, async (t) => {
      const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
      const writes = await newWrites(bank);
      const gateway = await startBreakpointGateway(t, {
        sections: { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...withUpdates },
        state: stateOption(t),
        breakpoints: breakpointsOf(writes),
      });
      const pendingFirsts = await sendToStages(gateway, bank, writes, { name: 'latency', ms: 3_000 });
      gateway.freeze();
      const pendingRepeats = Promise.all(writes.map(({ write }) => sendWrite(gateway, bank, write)));
      await assert.rejects(within(suspensionMs, 'a response of the suspended instance', pendingRepeats));
      gateway.thaw();

      const [firsts, repeats] = [await Promise.all(pendingFirsts), await pendingRepeats];
      for (const [index, { stage, write }] of writes.entries()) {
        const outcomes = [firsts[index] ?? '', repeats[index] ?? ''] as const;
        // Neither request has claimed the id yet, so either can be the first.
        const actual = stage === 'before the claim' ? outcomes.toSorted() : outcomes;
        // On a busy machine, the first byte of one of them may be more than a second late: then it was not sent, and the other one was.
        const isUnmarked = stage === 'before the claim' || stage === 'claimed';
        const isLate = isUnmarked && actual[0] === '503 STATE_UNAVAILABLE';
        assert.deepEqual(actual, isLate ? expected.sending : expected[stage], `${write.name}, ${stage}`);
        assert.equal(write.timesReceived(), 1, stage);
        assert.equal(write.effectCount() ?? 1, 1);
      }
    });
  }
});
