/** The report that instances share: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Deviation } from '../../src/contract/deviation.ts';
import { createContractReportTable, dayMs } from '../../src/store/contract-report.ts';
import { deleteInBatches } from '../../src/store/delete-in-batches.ts';
import {
  answered,
  countAnswers,
  keepFor,
  message,
  missing,
  required,
  startCounting,
  usual,
} from '../kit/counting-instance.ts';
import { databaseKinds } from '../kit/databases.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';

for (const [name, { skip, open }] of Object.entries(databaseKinds)) {
  /** An instance alone. */
  const start = async (t: TestContext) => startCounting((await open(t))[0]);

  /** Two instances, each with a database that can fail. */
  async function startBoth(t: TestContext) {
    const [one, other] = (await open(t)).map(createFaultyDatabase);
    assert.ok(one && other);
    const first = startCounting(one);
    return {
      one: { ...first, database: one },
      other: { ...startCounting(other, first.clock), database: other },
    };
  }

  describe(`the report of deviations in ${name}`, { skip }, () => {
    test('counts requests apart that both contracts refuse, and says by which contract', async (t) => {
      const { counts, reader } = await start(t);
      const other = { hash: 'hash-2', isOwn: false } as const;
      counts.add(message({ ...other, alsoRefusedBy: 'hash-1' }), [required]);
      for (const _ of [1, 2]) counts.add(message({ ...other, client: 'shop-2' }), [required]);
      const { deviations, messages } = await reader.read(0);
      assert.deepEqual(
        deviations.map(({ count, alsoRefusedBy, effect, clients }) => [
          count,
          alsoRefusedBy,
          effect,
          clients,
        ]),
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

    test('sums the counts of all instances and clients, with the first and the last time', async (t) => {
      const { one, other } = await startBoth(t);
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

    test('contains the days since a time, at most those of contract.keepFor', async (t) => {
      const { counts, clock, writer, reader } = await start(t);
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

    for (const table of ['deviation', 'check', 'skip'])
      test(`counts once what is written while the answer to the write of contract_${table} is lost`, async (t) => {
        const { one, other } = await startBoth(t);
        const add = () => {
          one.counts.add(message(), [required]);
          one.counts.skip('sandbox', 'request', 'shed');
        };
        const lostWrite = new RegExp(`INSERT INTO contract_${table}`);
        add();
        one.database.fail('after', lostWrite);
        assert.equal(await one.writer.flush(), false);
        assert.equal(await one.writer.flush(), false);
        add();
        assert.equal(await one.writer.flush(), false);
        one.database.recover();
        assert.equal(await one.writer.flush(), true);
        assert.ok(one.database.statements.filter((statement) => lostWrite.test(statement)).length > 3);
        const { deviations, messages, skipped } = await other.reader.read(0);
        assert.deepEqual(
          [...deviations, ...messages, ...skipped].map((row) => row.count),
          [2, 2, 2],
        );
      });

    test('separates requests that were checked against other contracts, and counts what was skipped', async (t) => {
      const { counts, reader } = await start(t);
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

    test('separates equal deviations that have different effects in two payment services', async (t) => {
      const { counts, reader } = await start(t);
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
  });

  describe(`the report of a day in ${name}`, { skip }, () => {
    test('contains at most 1,000 harmful and 1,000 other deviations of requests per instance, and counts the others as not-counted', async (t) => {
      const { counts, reader, clock } = await start(t);
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

    test('adds 1,000 harmful deviations of an instance, and counts the others together', async (t) => {
      const { counts, reader } = await start(t);
      for (let client = 0; client < 5_003; client++)
        counts.add(message({ client: `client-${client}` }), [required]);
      const { deviations, messages, skipped } = await reader.read(0);
      assert.deepEqual(
        deviations.map(({ count, clients }) => [count, clients.length]),
        [[1_000, 1_000]],
      );
      assert.deepEqual(
        messages.map(({ count, clients }) => [count, clients.length]),
        [[5_003, 5_003]],
      );
      assert.deepEqual(
        skipped.map(({ reason, count }) => [reason, count]),
        [['not-counted', 4_003]],
      );
    });

    test('has what was counted on it, although the database was unavailable at midnight', async (t) => {
      const { one, other } = await startBoth(t);
      one.counts.add(message(), [required]);
      await one.writer.flush();
      one.database.fail('before');
      one.clock.nowMs = 101 * dayMs - 1_000;
      one.counts.add(message({ requestId: 'before midnight', atMs: one.clock.nowMs }), [required]);
      assert.equal(await one.writer.flush(), false);
      one.clock.nowMs += 2_000;
      for (const _ of [1, 2])
        one.counts.add(message({ requestId: 'after midnight', atMs: one.clock.nowMs }), [required]);
      assert.equal(await one.writer.flush(), false);
      one.database.recover();
      assert.equal(await one.writer.flush(), true);

      const rowsSince = async (fromMs: number) =>
        (await other.reader.read(fromMs)).deviations.map((row) => [row.count, row.firstMs, row.requestId]);
      assert.deepEqual(await rowsSince(one.clock.nowMs), [[2, one.clock.nowMs, 'after midnight']]);
      assert.deepEqual(await rowsSince(0), [[4, 100 * dayMs, 'after midnight']]);
      assert.deepEqual(
        (await other.reader.read(0)).messages.map((row) => row.count),
        [4],
      );
    });

    test('has all counts after the clock was set back to it from the next day', async (t) => {
      const { counts, clock, writer, reader } = await start(t);
      const countBoth = async (deviation: Deviation) => {
        counts.add(message(), [deviation]);
        counts.skip('sandbox', 'request', 'shed');
        await writer.flush();
      };
      await countBoth(required);
      clock.nowMs += dayMs;
      await countBoth(required);
      clock.nowMs -= dayMs;
      await countBoth({ ...required, path: 'body/debtorAccount' });
      await countBoth(required);
      const { deviations, messages, skipped } = await reader.read(0);
      assert.deepEqual(
        deviations.map(({ path, count }) => [path, count]),
        [
          ['body/creditorName', 3],
          ['body/debtorAccount', 1],
        ],
      );
      assert.deepEqual([messages[0]?.count, skipped[0]?.count], [4, 4]);
    });

    test('expires as a whole, with the kinds and baselines that were not seen since then', async (t) => {
      const [database] = await open(t);
      const clock = { nowMs: Date.now() };
      const instance = startCounting(database, clock);
      const today = clock.nowMs;
      for (const days of [32, 31, 30, 1]) {
        clock.nowMs = today - days * dayMs;
        for (let client = 0; client < 600; client++)
          instance.counts.add(answered({ client: `client-${client}` }), [missing]);
        instance.counts.skip('sandbox', 'request', 'shed');
        await instance.writer.flush();
      }
      const { table } = instance;
      const deleteAll = async (keptMs: number) => {
        await deleteInBatches((limit, from) => table.deleteDeviations(keptMs, limit, from));
        await deleteInBatches((limit, from) => table.deleteChecks(keptMs, limit, from));
        await table.deleteOthers(keptMs);
      };
      const rows = async () => {
        const counts: number[] = [];
        for (const each of ['deviation', 'check', 'skip', 'baseline', 'kind'])
          counts.push(
            Number((await database.query(`SELECT count(*) AS rows FROM contract_${each}`))[0]?.rows),
          );
        return counts;
      };
      await deleteAll(keepFor());
      assert.deepEqual(await rows(), [1_200, 1_200, 2, 1, 1]);
      await database.query('UPDATE contract_baseline SET seen_at = seen_at - $1', [keepFor() + 1_000]);
      await deleteAll(keepFor());
      assert.deepEqual(await rows(), [1_200, 1_200, 2, 0, 1]);
      await database.query('UPDATE contract_kind SET seen_at = seen_at - $1', [keepFor() + 1_000]);
      await deleteAll(keepFor());
      assert.deepEqual(await rows(), [1_200, 1_200, 2, 0, 0]);
    });

    test('without room for a deviation of answers, a change of the bank is announced', async (t) => {
      const { counts, writer, changes } = await start(t);
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
  });

  describe(`a new kind of deviation in answers, in ${name}`, { skip }, () => {
    test('is announced once, by one instance, when ten answers without it were checked before', async (t) => {
      const { one, other } = await startBoth(t);
      await countAnswers(one, 10, []);
      await countAnswers(other, 1, [missing]);
      await countAnswers(one, 1, [missing]);
      await countAnswers(other, 1, [missing]);
      assert.deepEqual([one.changes.length, other.changes.length], [0, 1]);
      const { deviations } = await one.reader.read(0);
      assert.equal(deviations[0]?.changedMs, one.clock.nowMs);
    });

    test('is marked in the days since it was found, and only with this level and effect', async (t) => {
      const instance = await start(t);
      await countAnswers(instance, 10, []);
      await countAnswers(instance, 1, [missing, { ...missing, level: 'notable' }]);
      const foundMs = instance.clock.nowMs;
      const marks = async (fromMs: number) =>
        (await instance.reader.read(fromMs)).deviations.map(({ level, changedMs }) => [level, changedMs]);
      assert.deepEqual(await marks(foundMs), [
        ['harmful', foundMs],
        ['notable', undefined],
      ]);
      instance.clock.nowMs += dayMs;
      await countAnswers(instance, 1, [missing]);
      assert.deepEqual(await marks(instance.clock.nowMs), [['harmful', undefined]]);
      assert.equal(instance.changes.length, 1);
    });

    test('is a change after ten answers of any clients and days', async (t) => {
      const instance = await start(t);
      for (let day = 0; day < 5; day++) {
        for (const client of ['shop-1', 'shop-2']) instance.counts.add(answered({ client }), []);
        await instance.writer.flush();
        instance.clock.nowMs += dayMs;
      }
      await countAnswers(instance, 1, [missing]);
      assert.equal(instance.changes.length, 1);
    });

    test('stays marked in the report, although another instance found it at the same time', async (t) => {
      const { one, other } = await startBoth(t);
      await countAnswers(one, 10, []);
      await Promise.all([countAnswers(one, 1, [missing]), countAnswers(other, 1, [missing])]);
      for (const instance of [one, other]) await countAnswers(instance, 1, [missing]);
      assert.equal(one.changes.length + other.changes.length, 1);
      const { deviations } = await one.reader.read(0);
      assert.deepEqual(
        deviations.map((row) => [row.count, row.changedMs]),
        [[4, one.clock.nowMs]],
      );
    });

    for (const when of ['before', 'after'] as const)
      test(`is announced once by the next flush if the database fails ${when} the write that claims the alert`, async (t) => {
        const { one, other } = await startBoth(t);
        await countAnswers(one, 10, []);
        one.database.fail(when, /contract_kind/);
        assert.equal(await countAnswers(one, 1, [missing]), false);
        one.database.recover();
        one.clock.nowMs += 5_000;
        assert.equal(await one.writer.flush(), true);
        await countAnswers(one, 1, [missing]);
        await countAnswers(other, 1, [missing]);
        assert.deepEqual([one.changes.length, other.changes.length], [1, 0]);
        assert.equal((await one.reader.read(0)).deviations[0]?.count, 3);
      });

    test('is a change although the answer to the write of the baseline was lost, and not before ten answers', async (t) => {
      const { one, other } = await startBoth(t);
      one.database.fail('after', /INSERT INTO contract_baseline/);
      assert.equal(await countAnswers(one, 5, []), false);
      one.database.recover();
      assert.equal(await one.writer.flush(), true);
      await countAnswers(other, 1, [missing]);
      assert.deepEqual(other.changes, []);
      await countAnswers(other, 4, []);
      await countAnswers(one, 1, [{ ...missing, path: 'body/paymentId' }]);
      assert.deepEqual(
        one.changes.map(({ path }) => path),
        ['body/paymentId'],
      );
    });

    test('is a change for an instance that has started after the others have seen ten answers', async (t) => {
      const [database] = await open(t);
      await countAnswers(startCounting(database), 10, []);
      const next = startCounting(database);
      await countAnswers(next, 1, [missing]);
      assert.equal(next.changes.length, 1);
    });

    test('is not announced again on a later day, and its baseline and kind stay while there are answers', async (t) => {
      const [database] = await open(t);
      const instance = startCounting(database);
      await countAnswers(instance, 10, []);
      await countAnswers(instance, 1, [missing]);
      await database.query('UPDATE contract_baseline SET seen_at = 1');
      await database.query('UPDATE contract_kind SET seen_at = 1');
      instance.clock.nowMs += dayMs;
      await countAnswers(instance, 1, [missing]);
      await createContractReportTable(database).deleteOthers(keepFor());
      const next = startCounting(database, instance.clock);
      await countAnswers(next, 1, [missing, { ...missing, path: 'body/paymentId' }]);
      assert.deepEqual(
        [...instance.changes, ...next.changes].map(({ path }) => path),
        [missing.path, 'body/paymentId'],
      );
    });

    test('is announced once if midnight passes between the write whose answer is lost and the next one', async (t) => {
      const { one } = await startBoth(t);
      await countAnswers(one, 10, []);
      one.database.fail('after', /contract_kind/);
      assert.equal(await countAnswers(one, 1, [missing]), false);
      const foundMs = one.clock.nowMs;
      one.database.recover();
      one.clock.nowMs += dayMs;
      for (const _ of [1, 2]) await countAnswers(one, 1, [missing]);
      assert.equal(one.changes.length, 1);
      assert.equal((await one.reader.read(foundMs)).deviations[0]?.changedMs, foundMs);
    });

    test('is announced again when it comes back after its kind has expired', async (t) => {
      const [database] = await open(t);
      const instance = startCounting(database);
      await countAnswers(instance, 10, []);
      await countAnswers(instance, 1, [missing]);
      await database.query('DELETE FROM contract_kind');
      instance.clock.nowMs += dayMs;
      await countAnswers(instance, 1, [missing]);
      assert.equal(instance.changes.length, 2);
    });

    test('is no change if the bank has had it from the beginning, or if every bank has it', async (t) => {
      const instance = await start(t);
      await countAnswers(instance, 10, [missing]);
      await countAnswers(instance, 1, [missing, usual]);
      instance.clock.nowMs += dayMs;
      await countAnswers(instance, 1, [missing, usual]);
      assert.deepEqual(instance.changes, []);
      const { deviations } = await instance.reader.read(0);
      assert.deepEqual(
        deviations.map(({ changedMs }) => changedMs),
        [undefined, undefined],
      );
    });

    test('has a new baseline after a change of the contract', async (t) => {
      const instance = await start(t);
      await countAnswers(instance, 10, []);
      instance.counts.add(answered({ hash: 'hash-2' }), [missing]);
      await instance.writer.flush();
      assert.deepEqual(instance.changes, []);
    });

    test('is not looked for in requests', async (t) => {
      const instance = await start(t);
      await countAnswers(instance, 10, []);
      instance.counts.add(message(), [required]);
      await instance.writer.flush();
      assert.deepEqual(instance.changes, []);
    });
  });
}
