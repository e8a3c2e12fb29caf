/** The report that instances share: counted in memory, written to the state, and read from it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Deviation } from '../../../src/contract/deviation.ts';
import {
  type CheckedMessage,
  type CheckScope,
  type CountedDeviation,
  createDeviationCounts,
} from '../../../src/contract-guard/deviation-counts.ts';
import { createReportReader } from '../../../src/contract-guard/read-report.ts';
import { createReportWriter } from '../../../src/contract-guard/write-report.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { RequestLog } from '../../../src/state/ports.ts';

const dayMs = 86_400_000;
const keepFor = () => 30 * dayMs;
const required: Deviation = {
  level: 'harmful',
  rule: 'required',
  path: 'body/creditorName',
  effect: 'refused',
};
const missing: Deviation = { ...required, effect: 'client-may-fail' };
const usual: Deviation = { ...required, level: 'usual', rule: 'format', effect: 'none' };

type Counted = CheckScope & CheckedMessage;

const message = (changes: Partial<Counted> = {}): Counted => ({
  environment: 'sandbox',
  hash: 'hash-1',
  isOwn: true,
  direction: 'request',
  operation: 'initiatePayment',
  client: 'shop-1',
  requestId: 'request-1',
  atMs: 100 * dayMs,
  ...changes,
});
const answered = (changes: Partial<Counted> = {}) => message({ direction: 'response', ...changes });

function startInstance(
  state = createMemoryState(),
  clock = { nowMs: 100 * dayMs + 3_600_000 },
  requestLog: RequestLog = state.requestLog,
) {
  const { add, ...counters } = createDeviationCounts();
  const counts = {
    ...counters,
    add: (counted: Counted, deviations: readonly Deviation[]) => add(counted, counted, deviations),
  };
  const changes: CountedDeviation[] = [];
  const now = () => clock.nowMs;
  const writer = createReportWriter({
    requestLog,
    keyValues: state.keyValues,
    instance: `instance-${Math.random()}`,
    take: counts.take,
    keepFor,
    onChange: (deviation) => void changes.push(deviation),
    now,
  });
  const reader = createReportReader({ requestLog, flush: writer.flush, keepFor, now });
  return { state, clock, counts, changes, writer, reader };
}

describe('the report of deviations', () => {
  test('counts requests apart that both contracts refuse, and says by which contract', async () => {
    const { counts, reader } = startInstance();
    const other = { hash: 'hash-2', isOwn: false } as const;
    counts.add(message({ ...other, alsoRefusedBy: 'hash-1' }), [required]);
    for (const _ of [1, 2]) counts.add(message({ ...other, client: 'shop-2' }), [required]);
    const { deviations, messages } = await reader.read(0);
    assert.deepEqual(
      deviations.map(({ count, alsoRefusedBy, effect, clients }) => [count, alsoRefusedBy, effect, clients]),
      [
        [2, undefined, 'refused', [{ client: 'shop-2', count: 2 }]],
        [1, 'hash-1', 'refused', [{ client: 'shop-1', count: 1 }]],
      ],
    );
    assert.deepEqual(
      messages.map(({ count }) => count),
      [3],
    );
  });

  test('sums the counts of all instances and clients, with the first and the last time', async () => {
    const one = startInstance();
    const other = startInstance(one.state, one.clock);
    const atMs = 100 * dayMs;
    one.counts.add(message({ atMs: atMs + 20 }), [required]);
    await one.writer.flush();
    other.counts.add(message({ client: 'shop-2', requestId: 'request-2', atMs: atMs + 40 }), [required]);
    other.counts.add(message({ client: 'shop-2', requestId: 'request-3', atMs: atMs + 30 }), []);
    await other.writer.flush();

    for (const { reader } of [one, other]) {
      const { deviations, messages } = await reader.read(0);
      assert.equal(deviations.length, 1);
      const [{ count, clients, firstMs, lastMs, requestId } = assert.fail()] = deviations;
      assert.deepEqual([count, firstMs - atMs, lastMs - atMs, requestId], [2, 20, 40, 'request-2']);
      assert.deepEqual(clients.map(({ client }) => client).toSorted(), ['shop-1', 'shop-2']);
      assert.deepEqual(
        messages.map((row) => [row.count, row.firstMs - atMs]),
        [[3, 20]],
      );
    }
  });

  test('contains the days since a time, at most those of contract.keepFor', async () => {
    const { counts, clock, writer, reader } = startInstance();
    counts.add(message(), [required]);
    await writer.flush();
    clock.nowMs += dayMs;
    counts.add(message({ atMs: clock.nowMs }), [required]);
    await writer.flush();
    const countSince = async (fromMs: number) => (await reader.read(fromMs)).deviations[0]?.count;
    assert.equal(await countSince(0), 2);
    assert.equal(await countSince(clock.nowMs), 1);
    clock.nowMs += 30 * dayMs;
    assert.equal(await countSince(0), 1);
  });

  test('counts once what is written while the state fails after the write', async () => {
    const state = createMemoryState();
    const failing = { times: 1 };
    const requestLog: RequestLog = {
      ...state.requestLog,
      async append(slice, write) {
        const result = await state.requestLog.append(slice, write);
        if (failing.times-- > 0) throw new GatewayError('STATE_UNAVAILABLE', 'no answer');
        return result;
      },
    };
    const { counts, writer, reader } = startInstance(state, undefined, requestLog);
    counts.add(message(), [required]);
    assert.equal(await writer.flush(), false);
    counts.add(message(), [required]);
    assert.equal(await writer.flush(), true);
    assert.equal((await reader.read(0)).deviations[0]?.count, 2);
  });

  test('separates requests that were checked against other contracts, and counts what was skipped', async () => {
    const { counts, reader } = startInstance();
    counts.add(message(), []);
    counts.add(message({ hash: 'hash-2', isOwn: false }), [required]);
    counts.skip('sandbox', 'request', 'shed');
    counts.skip('sandbox', 'request', 'shed');
    const { deviations, messages, skipped } = await reader.read(0);
    assert.deepEqual(
      deviations.map(({ hash, isOwn }) => [hash, isOwn]),
      [['hash-2', false]],
    );
    assert.equal(messages.length, 2);
    assert.deepEqual(skipped, [{ environment: 'sandbox', direction: 'request', reason: 'shed', count: 2 }]);
  });

  test('separates equal deviations that have different effects in two payment services', async () => {
    const { counts, reader } = startInstance();
    const ignored: Deviation = { ...required, rule: 'not-in-version', level: 'notable', effect: 'ignored' };
    const dangerous: Deviation = { ...ignored, level: 'harmful', effect: 'executed-at-once' };
    for (const deviation of [ignored, dangerous, dangerous]) counts.add(message(), [deviation]);
    const { deviations } = await reader.read(0);
    assert.deepEqual(
      deviations.map(({ level, effect, count }) => [level, effect, count]),
      [
        ['harmful', 'executed-at-once', 2],
        ['notable', 'ignored', 1],
      ],
    );
  });

  test('counts deviations beyond its limit together, as not counted', () => {
    const { counts } = startInstance();
    for (let client = 0; client < 5_003; client++)
      counts.add(message({ client: `client-${client}` }), [required]);
    const taken = counts.take() ?? assert.fail();
    assert.equal(taken.deviations.length, 5_000);
    assert.deepEqual(
      taken.skipped.map(({ reason, count }) => [reason, count]),
      [['not-counted', 3]],
    );
    assert.equal(counts.take(), undefined);
  });
});

describe('the report of a day', () => {
  test('contains at most 1,000 harmful and 1,000 other deviations of requests per instance, and counts the others as not-counted', async () => {
    const { counts, reader, clock } = startInstance();
    const notable: Deviation = { ...required, level: 'notable', rule: 'unknown', effect: 'ignored' };
    for (let client = 0; client < 1_003; client++)
      counts.add(message({ client: `client-${client}` }), [notable]);
    counts.add(message(), [required]);
    counts.add(answered(), [missing]);
    await reader.read(0);
    counts.add(message({ client: 'client-1' }), [notable]);
    const countsOf = async () => {
      const { deviations, skipped } = await reader.read(0);
      return [deviations.map(({ direction, level, count }) => `${direction} ${level} ${count}`), skipped];
    };
    const skipped = [{ environment: 'sandbox', direction: 'request', reason: 'not-counted', count: 3 }];
    const other = ['request harmful 1', 'response harmful 1'];
    assert.deepEqual(await countsOf(), [[...other, 'request notable 1001'], skipped]);
    clock.nowMs += dayMs;
    counts.add(message({ client: 'client-1002' }), [notable]);
    assert.deepEqual(await countsOf(), [[...other, 'request notable 1002'], skipped]);
  });

  test('without room for a deviation of answers, a change of the bank is announced', async () => {
    const { counts, writer, changes } = startInstance();
    for (let client = 0; client < 1_003; client++)
      counts.add(answered({ client: `client-${client}` }), [missing]);
    await writer.flush();
    assert.equal(changes.length, 0);
    counts.add(answered(), [{ ...missing, path: 'body/paymentId' }]);
    await writer.flush();
    assert.deepEqual(
      changes.map(({ path }) => path),
      ['body/paymentId'],
    );
  });

  test('states a later start after a loss of the state, and announces the same change of the bank again', async () => {
    const state = createMemoryState();
    const clock = { nowMs: 100 * dayMs + 3_600_000 };
    let { requestLog, keyValues } = createMemoryState();
    const log: RequestLog = {
      ...state.requestLog,
      append: (...args) => requestLog.append(...args),
      readValues: (...args) => requestLog.readValues(...args),
      readCounters: (...args) => requestLog.readCounters(...args),
    };
    const values: typeof keyValues = {
      ...keyValues,
      read: (...args) => keyValues.read(...args),
      write: (...args) => keyValues.write(...args),
      writeIfAbsent: (...args) => keyValues.writeIfAbsent(...args),
    };
    const instance = startInstance({ ...state, keyValues: values }, clock, log);
    const add = (times: number, deviations: readonly Deviation[]) => {
      for (let time = 0; time < times; time++)
        instance.counts.add(answered({ atMs: clock.nowMs }), deviations);
      clock.nowMs += 1_000;
      return instance.writer.flush();
    };
    await add(10, []);
    await add(1, [missing]);
    await add(3, [usual]);
    assert.equal(instance.changes.length, 1);
    const lastStoredMs = clock.nowMs;
    ({ requestLog, keyValues } = createMemoryState());
    await add(1, []);
    const { messages } = await instance.reader.read(0);
    assert.deepEqual(
      messages.map(({ count, firstMs }) => [count, firstMs]),
      [[1, lastStoredMs]],
    );
    await add(10, []);
    await add(1, [usual]); // its counter was larger before the loss
    assert.equal((await instance.reader.read(0)).messages[0]?.firstMs, lastStoredMs);
    await add(1, [missing]);
    assert.equal(instance.changes.length, 2);
  });
});

describe('a new kind of deviation in answers', () => {
  const count = (
    instance: ReturnType<typeof startInstance>,
    times: number,
    deviations: readonly Deviation[],
  ) => {
    for (let time = 0; time < times; time++) instance.counts.add(answered(), deviations);
    return instance.writer.flush();
  };

  test('is announced once, by one instance, when ten answers without it were checked before', async () => {
    const one = startInstance();
    const other = startInstance(one.state, one.clock);
    await count(one, 10, []);
    await count(other, 1, [missing]);
    await count(one, 1, [missing]);
    await count(other, 1, [missing]);
    assert.deepEqual([one.changes.length, other.changes.length], [0, 1]);
    const { deviations } = await one.reader.read(0);
    assert.equal(deviations[0]?.changedMs, one.clock.nowMs);
  });

  test('is a change after ten answers of any clients and days', async () => {
    const instance = startInstance();
    for (let day = 0; day < 5; day++) {
      for (const client of ['shop-1', 'shop-2']) instance.counts.add(answered({ client }), []);
      await instance.writer.flush();
      instance.clock.nowMs += dayMs;
    }
    await count(instance, 1, [missing]);
    assert.equal(instance.changes.length, 1);
  });

  test('stays marked in the report, although another instance found it at the same time', async () => {
    const one = startInstance();
    const other = startInstance(one.state, one.clock);
    await count(one, 10, []);
    await Promise.all([count(one, 1, [missing]), count(other, 1, [missing])]);
    for (const instance of [one, other]) await count(instance, 1, [missing]);
    assert.equal(one.changes.length + other.changes.length, 1);
    const { deviations } = await one.reader.read(0);
    assert.deepEqual(
      deviations.map((row) => [row.count, row.changedMs]),
      [[4, one.clock.nowMs]],
    );
  });

  for (const [name, failing] of [
    ['before the write', { before: true }],
    ['after the write', { before: false }],
  ] as const) {
    test(`is announced by the next flush if the state fails ${name} that claims the alert`, async () => {
      const state = createMemoryState();
      let failures = 1;
      const unreliable = {
        ...state,
        keyValues: {
          ...state.keyValues,
          async writeIfAbsent(key: string, value: string, ttlMs?: number) {
            const fails = failures-- > 0;
            const error = new GatewayError('STATE_UNAVAILABLE', 'no answer');
            if (fails && failing.before) throw error;
            const isAbsent = await state.keyValues.writeIfAbsent(key, value, ttlMs);
            if (fails) throw error;
            return isAbsent;
          },
        },
      };
      const one = startInstance(unreliable);
      await count(one, 10, []);
      assert.equal(await count(one, 1, [missing]), false);
      assert.equal(await one.writer.flush(), true);
      await count(one, 1, [missing]);
      assert.equal(one.changes.length, 1);
      assert.equal((await one.reader.read(0)).deviations[0]?.count, 2);
    });
  }

  test('is no change if the bank has had it from the beginning, or if every bank has it', async () => {
    const instance = startInstance();
    await count(instance, 10, [missing]);
    await count(instance, 1, [missing, usual]);
    instance.clock.nowMs += dayMs;
    await count(instance, 1, [missing, usual]);
    assert.deepEqual(instance.changes, []);
  });

  test('has a new baseline after a change of the contract', async () => {
    const instance = startInstance();
    await count(instance, 10, []);
    instance.counts.add(answered({ hash: 'hash-2' }), [missing]);
    await instance.writer.flush();
    assert.deepEqual(instance.changes, []);
  });

  test('is not looked for in requests', async () => {
    const instance = startInstance();
    await count(instance, 10, []);
    instance.counts.add(message(), [required]);
    await instance.writer.flush();
    assert.deepEqual(instance.changes, []);
  });
});
