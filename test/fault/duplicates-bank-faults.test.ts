/**
 * Every fault of the bank, met by every kind of write, which is then sent again: to the same instance, and to another
 * one. There is never a second effect, and a second request only if the first one provably did nothing (F1, F4, E8).
 */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Fault, momentOf } from '../../src/simulated-bank/faults.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import { createSqliteState } from '../../src/state/sqlite.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { printTable, together } from '../kit/table.ts';
import { startTlsBankProxy, type TlsBankProxy } from '../kit/tls-bank-proxy.ts';
import { until } from '../kit/within.ts';
import { newWrite, outcomeOf, type Write, writeNames } from '../kit/writes.ts';

/** What becomes of a repeat. */
type Fate = 'replayed' | 'in doubt' | 'sent again' | 'in doubt until the late answer';

interface Row {
  readonly what: string;
  /** What the TPP is told of the first one; `well` as if nothing had happened. */
  readonly first: string;
  readonly fate: Fate;
  readonly sections?: Sections;
  /** Makes ready for the first one. @returns ends the trouble, before the repeat */
  readonly strike: (line: Line) => Promise<() => unknown>;
  readonly effects: 0 | 1;
}

interface Line {
  readonly bank: SimulatedBank;
  readonly door: TlsBankProxy;
}

/** A deadline of less than a second, for faults that are only noticed when it passes. */
const short: Sections = {
  deadlines: { connect: '400ms', write: '800ms' },
  shaping: { maxWait: { write: '700ms' } },
  idempotency: { wait: '50ms' },
};

function struckBy(fault: Fault, first: string, fate: Fate, sections?: Sections): Row {
  const { name, ...parameters } = fault;
  const values = Object.values(parameters).map((value) => JSON.stringify(value).replaceAll('"', ''));
  const isNotDone = momentOf(fault) !== 'after-effect' && fate !== 'sent again';
  return {
    what: [name, ...values].join(' ').slice(0, 46),
    first,
    fate,
    effects: isNotDone ? 0 : 1,
    ...(sections && { sections }),
    strike: async ({ bank }) => {
      bank.injectFault(fault, { times: 1 });
      return () => {};
    },
  };
}

const unknown = ['504 OUTCOME_UNKNOWN', 'in doubt'] as const;
const malformed = ['502 UPSTREAM_MALFORMED', 'in doubt'] as const;
const well = ['well', 'replayed'] as const;
const unreached = { first: '502 UPSTREAM_UNREACHED', fate: 'sent again', effects: 1 } as const;

/** Where no connection was made, even a write is tried once more. */
const attempts = [1, 2];

const rows: readonly Row[] = [
  {
    what: 'connection refused',
    ...unreached,
    async strike({ bank }) {
      const port = Number(new URL(bank.baseUrl).port);
      await bank.stop();
      return () => bank.start(port);
    },
  },
  {
    what: 'handshake never answered',
    ...unreached,
    sections: { deadlines: { connect: '600ms' } },
    async strike({ door }) {
      for (const _ of attempts) door.onNextConnection(() => {});
      return () => {};
    },
  },
  {
    what: 'handshake reset',
    ...unreached,
    async strike({ door }) {
      for (const _ of attempts) door.onNextConnection((socket) => socket.resetAndDestroy());
      return () => {};
    },
  },
  struckBy({ name: 'reset', strikes: 'before-reading' }, ...unknown),
  struckBy({ name: 'reset', strikes: 'before-effect' }, ...unknown),
  struckBy({ name: 'reset', strikes: 'after-effect' }, ...unknown),
  struckBy({ name: 'close-before-answering', strikes: 'before-effect' }, ...unknown),
  struckBy({ name: 'close-before-answering' }, ...unknown),
  struckBy({ name: 'reset-mid-answer' }, ...malformed),
  struckBy({ name: 'half-answer' }, ...malformed),
  struckBy({ name: 'half-chunked-answer' }, ...malformed),
  struckBy({ name: 'never-answer', strikes: 'before-reading' }, ...unknown, short),
  struckBy({ name: 'never-answer', strikes: 'before-effect' }, ...unknown, short),
  struckBy({ name: 'never-answer' }, ...unknown, short),
  struckBy({ name: 'drip', everyMs: 20 }, ...unknown, short),
  struckBy({ name: 'drip', everyMs: 20, from: 'body' }, ...unknown, short),
  struckBy({ name: 'latency', ms: 10_000 }, ...unknown, short),
  struckBy({ name: 'latency', ms: 1_500 }, unknown[0], 'in doubt until the late answer', short),
  struckBy({ name: 'latency', ms: 50 }, ...well),
  struckBy({ name: 'status', status: 500 }, '500', 'replayed'),
  struckBy({ name: 'status', status: 501 }, '501', 'replayed'),
  struckBy({ name: 'status', status: 503, headers: { 'Retry-After': '1' } }, '503', 'replayed'),
  struckBy({ name: 'status', status: 504 }, '504', 'replayed'),
  struckBy({ name: 'status', status: 504, strikes: 'after-effect' }, '504', 'replayed'),
  struckBy({ name: 'status', status: 302 }, '302', 'replayed'),
  struckBy({ name: 'status', status: 400 }, '400', 'replayed'),
  struckBy({ name: 'status', status: 403 }, '403', 'replayed'),
  struckBy({ name: 'status', status: 413, strikes: 'before-reading' }, '413', 'replayed'),
  struckBy({ name: 'too-many-requests' }, '429', 'sent again'),
  struckBy({ name: 'garbage' }, ...malformed),
  struckBy({ name: 'two-content-lengths' }, ...malformed),
  struckBy({ name: 'carriage-return-in-header' }, ...malformed),
  struckBy({ name: 'huge-headers' }, ...malformed),
  struckBy({ name: 'switching-protocols' }, ...malformed),
  struckBy({ name: 'corrupt-gzip-answer' }, ...malformed),
  struckBy({ name: 'huge-answer' }, ...malformed),
  struckBy({ name: 'huge-answer', framing: 'content-length' }, ...malformed),
  struckBy({ name: 'two-answers' }, ...well),
  struckBy({ name: 'interim-answers' }, ...well),
  struckBy({ name: 'gzip-answer' }, ...well),
  struckBy({ name: 'connection-close' }, ...well),
  struckBy({ name: 'close-idle' }, ...well),
];

const life = lifeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** The instances that a write and its repeat go to, by the state that they share. */
const kinds = {
  memory: { skip: false, newWay: async () => createMemoryState, repeats: ['same'] },
  file: {
    skip: false,
    newWay: async (t: TestContext) => () => createSqliteState(join(temporaryFolder(t), 'state.db')),
    repeats: ['same'],
  },
  Redis: {
    skip: skipWithoutRedis,
    newWay: async () => redisStateFactory(await redis()),
    repeats: ['same', 'other'],
  },
} as const;

/** One write and its repeat, as they went. */
interface Found {
  readonly what: string;
  readonly way: string;
  readonly first: string;
  readonly again: string;
  readonly counts: readonly [sent: number, effects: number | undefined, listed: boolean];
}
const found: Found[] = [];

/** A bank, and an instance for the first request and, beside it, one for repeats that go to another. */
async function startLine(t: TestContext, kind: keyof typeof kinds, { what, sections }: Row) {
  const bank = await startBank(t);
  const door = await startTlsBankProxy(t, bank);
  const sandbox = what.startsWith('handshake') ? door.environment : { baseUrl: bank.baseUrl };
  const { newWay, repeats } = kinds[kind];
  const way = await newWay(t);
  const all = { environments: { sandbox }, ...sections };
  const first = await startGateway(t, all, way());
  const other = repeats.length > 1 ? await startGateway(t, all, way()) : first;
  return { bank, door, first, repeatsAt: { same: first, other } };
}

const proper = { initiation: '201', cancellation: '202', authorisation: '201' } as const;

/** What the repeat is told. */
function expectedOf({ name }: Write, { first, fate }: Row): string {
  if (fate === 'sent again') return proper[name];
  if (fate === 'replayed') return `${first === 'well' ? proper[name] : first} replayed`;
  return '409 DUPLICATE_IN_DOUBT';
}

const isListed = ({ first, fate }: Row) => fate === 'in doubt' || (fate === 'replayed' && /^5/.test(first));

describe('a write that meets a fault of the bank, and is sent again', { concurrency: 8 }, () => {
  for (const row of rows) {
    for (const kind of ['memory', 'file', 'Redis'] as const) {
      const { skip, repeats } = kinds[kind];
      test(`${row.what}: it is ${row.fate}, in ${kind}`, { skip }, async (t) => {
        const { bank, door, first, repeatsAt } = await startLine(t, kind, row);
        for (const name of writeNames) {
          for (const at of repeats) {
            bank.clearFaults();
            const write = await newWrite(bank, name);
            const mend = await row.strike({ bank, door });
            bank.injectFault({ name: 'connection-close' }); // so that no kept connection is there when one is to break
            const original = await call(first.url, write.call);
            await mend();
            const again = await call(repeatsAt[at].url, write.call);

            const listed = await callAdminApi(repeatsAt[at], 'GET', '/api/in-doubt');
            assert.equal(listed.status, 200, listed.text);
            const isOpen = listed.text.includes(write.requestId);
            const expected = row.first === 'well' ? proper[name] : row.first;
            assert.deepEqual([outcomeOf(original), outcomeOf(again)], [expected, expectedOf(write, row)]);
            if (row.fate === 'replayed') assert.equal(again.text, original.text);
            if (row.fate === 'in doubt until the late answer') {
              const late = async () =>
                outcomeOf(await call(repeatsAt[at].url, write.call)) === `${proper[name]} replayed`;
              await until(10_000, 'the late answer is replayed', late);
            } else assert.equal(isOpen, isListed(row));
            assert.equal(write.timesReceived(), row.first === '429' ? 2 : 1);
            assert.equal(write.effectCount() ?? row.effects, row.effects);
            const counts = [write.timesReceived(), write.effectCount(), isOpen] as const;
            const way = `${kind}, ${at}`;
            found.push({ what: row.what, way, first: outcomeOf(original), again: outcomeOf(again), counts });
          }
        }
      });
    }
  }
});

const told = (all: readonly Found[], of: (one: Found) => unknown) => together(all.map(of));

test('the table of all faults, writes and repeats', (t) => {
  const ways = ['memory, same', 'file, same', 'Redis, same', 'Redis, other'];
  const lines = rows.map(({ what }) => {
    const all = found.filter((one) => one.what === what);
    const again = ways.map((way) =>
      told(
        all.filter((one) => one.way === way),
        (one) => one.again,
      ),
    );
    const isListed = told(all, ({ counts }) => (counts[2] ? 'yes' : 'no'));
    const effects = all.filter(({ counts }) => counts[1] !== undefined);
    return [what, told(all, ({ first }) => first), ...again, told(all, ({ counts }) => counts[0])].concat(
      told(effects, ({ counts }) => counts[1]),
      isListed,
    );
  });
  const repeats = ways.map((way) => `repeat: ${way}`);
  t.diagnostic('initiation, cancellation and authorisation each; where they differ, all three');
  printTable(t, [['fault of the bank', 'first', ...repeats, 'sent', 'effects', 'listed'], ...lines]);
});
