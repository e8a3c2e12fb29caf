/**
 * One instance alone, in memory or on a file: when it stands still, nothing is carried out twice. When one is killed that
 * keeps its state in memory, it forgets what it has sent, as it says at its start: a repeat is then a new request. That
 * is shown, not promised.
 */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { startBreakpointGateway } from '../kit/breakpoint-gateway.ts';
import type { BreakpointGatewayOptions } from '../kit/breakpoint-process.ts';
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
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { printTable, together } from '../kit/table.ts';
import { within } from '../kit/within.ts';

/** What the first request and the repeat that came while nothing moved are told, when all goes on. */
type Pair = readonly [first: WriteOutcome, repeat: WriteOutcome];

const replayed: Pair = ['proper', 'replayed'];
const stopped: Readonly<Record<WriteStage, Pair>> = {
  'before the claim': replayed,
  claimed: replayed,
  sending: ['503 STATE_UNAVAILABLE', 'proper'], // what slept longer than a second after the last step is not sent
  'at the bank': replayed,
  answered: replayed,
  stored: replayed,
};

interface Found {
  readonly signal: string;
  readonly moment: WriteStage;
  readonly pair: Pair;
  readonly sent: number;
}
const found: Found[] = [];

/** Where the state may be when there is one instance. */
const places: Readonly<Record<string, (t: TestContext) => BreakpointGatewayOptions['state']>> = {
  memory: () => 'memory',
  file: (t) => ({ file: join(temporaryFolder(t), 'state.db') }),
};

async function startLine(t: TestContext, state: BreakpointGatewayOptions['state']) {
  const bank = await startBank(t, { timings: { authorisedAfterMs: 600_000 } });
  const writes = await newWrites(bank);
  const start = (held: readonly StagedWrite[]) =>
    startBreakpointGateway(t, {
      sections: { environments: { sandbox: { baseUrl: bank.baseUrl } } },
      state,
      breakpoints: breakpointsOf(held),
    });
  return { bank, writes, start };
}

/** Longer than any instance may be silent that is one of several. Milliseconds. */
const standstillMs = 6_500;

describe('an instance alone (H2)', { concurrency: 4 }, () => {
  for (const [where, place] of Object.entries(places)) {
    test(`carries every write out once at most, although it stands still at any step of it: state in ${where}`, async (t) => {
      const { bank, writes, start } = await startLine(t, place(t));
      const one = await start(writes);
      const firsts = await sendToStages(one, bank, writes, { name: 'latency', ms: 3_000 });
      one.freeze();
      const repeats = Promise.all(writes.map(({ write }) => sendWrite(one, bank, write)));
      await assert.rejects(within(standstillMs, 'an answer while it stands still', repeats));
      one.thaw();

      const [first, repeat] = [await Promise.all(firsts), await repeats];
      for (const [index, { moment, write }] of writes.entries()) {
        const pair = [first[index] ?? '', repeat[index] ?? ''] as const;
        // Neither has claimed anything yet: whichever is first is carried out.
        const told = moment === 'before the claim' ? pair.toSorted() : pair;
        assert.deepEqual(told, stopped[moment], `${write.name}, ${moment}`);
        assert.equal(write.timesReceived(), 1, moment);
        assert.equal(write.effectCount() ?? 1, 1);
        found.push({
          signal: `SIGSTOP, ${where}`,
          moment,
          pair: stopped[moment],
          sent: write.timesReceived(),
        });
      }
    });
  }

  test('that is killed and started again shows what it has forgotten', async (t) => {
    const { bank, writes, start } = await startLine(t, 'memory');
    const one = await start(writes);
    const firsts = await sendToStages(one, bank, writes, { name: 'never-answer' });
    await one.kill();
    const next = await start([]);
    for (const [index, { moment, write }] of writes.entries()) {
      const pair = [(await firsts[index]) ?? '', await sendWrite(next, bank, write)] as const;
      assert.equal(pair[0], 'lost');
      found.push({ signal: 'SIGKILL, memory', moment, pair, sent: write.timesReceived() });
    }
  });
});

test('the table of all standstills, steps and repeats', (t) => {
  const lines = ['SIGSTOP, memory', 'SIGSTOP, file', 'SIGKILL, memory'].flatMap((signal) =>
    writeStages.map((moment) => {
      const all = found.filter((one) => one.signal === signal && one.moment === moment);
      const told = (of: (one: Found) => unknown) => together(all.map(of));
      return [
        signal,
        moment,
        told(({ pair }) => pair[0]),
        told(({ pair }) => pair[1]),
        told((one) => one.sent),
      ];
    }),
  );
  t.diagnostic(
    'SIGSTOP: the repeat comes meanwhile. SIGKILL: it comes after the restart, which has forgotten all',
  );
  printTable(t, [['signal', 'a write that was', 'the first', 'the repeat', 'at the bank'], ...lines]);
});
