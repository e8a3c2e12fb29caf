/**
 * Every kind of write meets every fault of the bank and is then repeated, to the same instance or to another one in turn. There
 * is never a second effect, and a second request only if the first one provably did nothing (F1, F4, E8). All faults meet
 * PostgreSQL; one fault of each outcome meets the states of a single instance.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Fault, momentOf } from '../../src/simulated-bank/faults.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, repeatWhile } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type Sections, shortDeadlines, startBank, startGateway } from '../kit/gateway.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { startTlsBankProxy, type TlsBankProxy } from '../kit/tls-bank-proxy.ts';
import { until } from '../kit/within.ts';
import { newWrite, outcomeOf, successStatus, type Write, withUpdates, writeNames } from '../kit/writes.ts';

/** What happens to a repeat. */
type Fate = 'replayed' | 'in doubt' | 'sent again' | 'in doubt until the late response';

interface FaultCase {
  readonly title: string;
  /** The outcome of the first request; `success` as if there were no fault. */
  readonly first: string;
  readonly fate: Fate;
  readonly sections?: Sections;
  /** Prepares the fault for the first request. @returns ends the fault before the repeat */
  readonly inject: (setup: FaultSetup) => Promise<() => unknown>;
  readonly effectCount: 0 | 1;
}

interface FaultSetup {
  readonly bank: SimulatedBank;
  readonly proxy: TlsBankProxy;
}

function withFault(fault: Fault, first: string, fate: Fate, sections?: Sections): FaultCase {
  const { name, ...parameters } = fault;
  const values = Object.values(parameters).map((value) => JSON.stringify(value).replaceAll('"', ''));
  const hasNoEffect = momentOf(fault) !== 'after-effect' && fate !== 'sent again';
  return {
    title: [name, ...values].join(' '),
    first,
    fate,
    effectCount: hasNoEffect ? 0 : 1,
    ...(sections && { sections }),
    inject: async ({ bank }) => {
      bank.injectFault(fault, { times: 1 });
      return () => {};
    },
  };
}

const unknown = ['504 OUTCOME_UNKNOWN', 'in doubt'] as const;
const malformed = ['502 UPSTREAM_MALFORMED', 'in doubt'] as const;
const success = ['success', 'replayed'] as const;
const unreached = { first: '502 UPSTREAM_UNREACHED', fate: 'sent again', effectCount: 1 } as const;

/** The gateway retries once if it cannot connect, writes included. */
const connectionAttempts = [1, 2];

const faultCases: readonly FaultCase[] = [
  {
    title: 'connection refused',
    ...unreached,
    async inject({ bank }) {
      const port = Number(new URL(bank.baseUrl).port);
      await bank.stop();
      return () => bank.start(port);
    },
  },
  {
    title: 'handshake never answered',
    ...unreached,
    sections: { deadlines: { connect: '900ms' } },
    async inject({ proxy }) {
      for (const _ of connectionAttempts) proxy.onNextConnection(() => {});
      return () => {};
    },
  },
  {
    title: 'handshake reset',
    ...unreached,
    async inject({ proxy }) {
      for (const _ of connectionAttempts) proxy.onNextConnection((socket) => socket.resetAndDestroy());
      return () => {};
    },
  },
  withFault({ name: 'reset', strikes: 'before-reading' }, ...unknown),
  withFault({ name: 'reset', strikes: 'before-effect' }, ...unknown),
  withFault({ name: 'reset', strikes: 'after-effect' }, ...unknown),
  withFault({ name: 'close-before-answering', strikes: 'before-effect' }, ...unknown),
  withFault({ name: 'close-before-answering' }, ...unknown),
  withFault({ name: 'reset-mid-answer' }, ...malformed),
  withFault({ name: 'half-answer' }, ...malformed),
  withFault({ name: 'half-chunked-answer' }, ...malformed),
  withFault({ name: 'never-answer', strikes: 'before-reading' }, ...unknown, shortDeadlines),
  withFault({ name: 'never-answer', strikes: 'before-effect' }, ...unknown, shortDeadlines),
  withFault({ name: 'never-answer' }, ...unknown, shortDeadlines),
  withFault({ name: 'drip', everyMs: 20 }, ...unknown, shortDeadlines),
  withFault({ name: 'drip', everyMs: 20, from: 'body' }, ...unknown, shortDeadlines),
  withFault({ name: 'latency', ms: 600_000 }, unknown[0], 'in doubt until the late response', shortDeadlines),
  withFault({ name: 'latency', ms: 50 }, ...success),
  withFault({ name: 'status', status: 500 }, '500', 'replayed'),
  withFault({ name: 'status', status: 501 }, '501', 'replayed'),
  withFault({ name: 'status', status: 503, headers: { 'Retry-After': '1' } }, '503', 'replayed'),
  withFault({ name: 'status', status: 504 }, '504', 'replayed'),
  withFault({ name: 'status', status: 504, strikes: 'after-effect' }, '504', 'replayed'),
  withFault({ name: 'status', status: 302 }, '302', 'replayed'),
  withFault({ name: 'status', status: 400 }, '400', 'replayed'),
  withFault({ name: 'status', status: 403 }, '403', 'replayed'),
  withFault({ name: 'status', status: 413, strikes: 'before-reading' }, '413', 'replayed'),
  withFault({ name: 'too-many-requests' }, '429', 'sent again'),
  withFault({ name: 'garbage' }, ...malformed),
  withFault({ name: 'two-content-lengths' }, ...malformed),
  withFault({ name: 'carriage-return-in-header' }, ...malformed),
  withFault({ name: 'huge-headers' }, ...malformed),
  withFault({ name: 'switching-protocols' }, ...malformed),
  withFault({ name: 'huge-answer' }, ...malformed),
  withFault({ name: 'huge-answer', framing: 'content-length' }, ...malformed),
  withFault({ name: 'two-answers' }, ...success),
  withFault({ name: 'interim-answers' }, ...success),
  withFault({ name: 'gzip-answer' }, ...success),
  withFault({ name: 'connection-close' }, ...success),
  withFault({ name: 'close-idle' }, ...success),
];

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** The kinds of state, and the instances to which repeats are sent. */
const stateKinds = {
  memory: { skip: false, state: async () => ({}), repeatTo: ['same'] },
  file: {
    skip: false,
    state: async (t: TestContext) => ({ file: join(temporaryFolder(t), 'state.db') }),
    repeatTo: ['same'],
  },
  PostgreSQL: {
    skip: skipWithoutRedis,
    state: async () => ({
      postgres: await newMigratedPostgres(),
      redis: await redis(),
      prefix: `test-${randomUUID()}:`,
    }),
    repeatTo: ['same', 'other'],
  },
} as const;

/** A bank, an instance for first requests, and another one for repeats if the state can be shared. */
async function startSetup(t: TestContext, kind: keyof typeof stateKinds, { title, sections }: FaultCase) {
  const bank = await startBank(t);
  const proxy = await startTlsBankProxy(t, bank);
  const sandbox = title.startsWith('handshake') ? proxy.environment : { baseUrl: bank.baseUrl };
  const { state, repeatTo } = stateKinds[kind];
  const all = { environments: { sandbox }, ...withUpdates, ...sections, state: await state(t) };
  const first = await startGateway(t, all);
  const other = repeatTo.length > 1 ? await startGateway(t, all) : first;
  return { bank, proxy, first, instances: { same: first, other } };
}

function expectedFirst({ name }: Write, { first }: FaultCase): string {
  return first === 'success' ? successStatus[name] : first;
}

function expectedRepeat(write: Write, faultCase: FaultCase): string {
  if (faultCase.fate === 'sent again') return successStatus[write.name];
  if (faultCase.fate === 'replayed') return `${expectedFirst(write, faultCase)} replayed`;
  return '409 DUPLICATE_IN_DOUBT';
}

/** The outcome of the first request and the fate of its repeat, without the exact status of the bank. */
const outcomeClass = ({ first, fate }: FaultCase) => `${first.replace(/^\d+$/, 'status')}, ${fate}`;

/** Whether it is the first fault with its outcome. */
const isFirstOfItsClass = (one: FaultCase) =>
  faultCases.find((other) => outcomeClass(other) === outcomeClass(one)) === one;

const isListed = ({ first, fate }: FaultCase) =>
  fate === 'in doubt' || (fate === 'replayed' && /^5/.test(first));

describe('a repeated write after a fault of the bank', { concurrency: 4 }, () => {
  for (const [number, faultCase] of faultCases.entries()) {
    const singleInstance = isFirstOfItsClass(faultCase) ? (['memory', 'file'] as const) : [];
    for (const kind of [...singleInstance, 'PostgreSQL'] as const) {
      const { skip, repeatTo } = stateKinds[kind];
      const { title, fate } = faultCase;
      test(`is ${fate}, with the state in ${kind}: ${title}`, { skip }, async (t) => {
        const { bank, proxy, first, instances } = await startSetup(t, kind, faultCase);
        for (const [index, name] of writeNames.entries()) {
          const target = repeatTo[(number + index) % repeatTo.length] ?? 'same';
          bank.clearFaults();
          const write = await newWrite(bank, name);
          const endFault = await faultCase.inject({ bank, proxy });
          bank.injectFault({ name: 'connection-close' }); // no later write finds a pooled connection
          const original = await repeatWhile('QUEUE_TIMEOUT', () => call(first.url, write.call));
          await endFault();
          const repeat = await call(instances[target].url, write.call);

          const inDoubt = await callAdminApi(instances[target], 'GET', '/api/in-doubt');
          assert.equal(inDoubt.status, 200, inDoubt.text);
          assert.deepEqual(
            [outcomeOf(original), outcomeOf(repeat)],
            [expectedFirst(write, faultCase), expectedRepeat(write, faultCase)],
          );
          if (fate === 'replayed') assert.equal(repeat.text, original.text);
          if (fate === 'in doubt until the late response') {
            bank.endDelays();
            const isReplayed = async () =>
              outcomeOf(await call(instances[target].url, write.call)) === `${successStatus[name]} replayed`;
            await until(10_000, 'the late response is replayed', isReplayed);
          } else assert.equal(inDoubt.text.includes(write.requestId), isListed(faultCase));
          assert.equal(write.timesReceived(), faultCase.first === '429' ? 2 : 1);
          assert.equal(write.effectCount() ?? faultCase.effectCount, faultCase.effectCount);
        }
      });
    }
  }
});
