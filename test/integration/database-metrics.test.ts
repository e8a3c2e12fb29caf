/** The metrics of the database, on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createDatabaseMetrics } from '../../src/database-metrics.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { databaseKinds } from '../kit/databases.ts';
import { answer, claimKinds, mark, newClaim, sentTo } from '../kit/ledger-claims.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { until } from '../kit/within.ts';

for (const [name, { skip, open }] of Object.entries(databaseKinds))
  describe(`the metrics of ${name}`, { skip }, () => {
    async function start(t: TestContext) {
      const [database, second] = await open(t);
      const metrics = createMetrics();
      const { measured, refresh } = createDatabaseMetrics(database, metrics);
      const samplesOf = async (metric: string) =>
        parsePrometheus(await metrics.text()).get(metric)?.samples ?? [];
      const readingOf = async (metric: string) => (await samplesOf(metric))[0]?.value;
      const refreshFor = async (seconds: number) => {
        for (let passed = 0; passed < seconds; passed += 1) await refresh();
      };
      return { database, second, ledger: createLedgerTable(measured), samplesOf, readingOf, refreshFor };
    }

    test('contain the duration of each statement of a write: once for all writes of a batch', async (t) => {
      const { ledger, samplesOf } = await start(t);
      const countOf = async (statement: string) =>
        (await samplesOf('penstock_database_seconds')).find(
          ({ name: sample, labels }) => sample.endsWith('_count') && labels.statement === statement,
        )?.value;
      const counts = () => Promise.all(['claim', 'mark', 'record'].map(countOf));
      assert.deepEqual(await counts(), [0, 0, 0]);
      const claims = [newClaim(), newClaim(), newClaim()];
      await claimKinds(ledger, claims);
      assert.deepEqual(await counts(), [1, 0, 0]);
      const [one] = claims;
      assert.ok(one);
      await ledger.mark(mark(one));
      await ledger.recordAnswer(sentTo(one), answer);
      assert.deepEqual(await counts(), [1, 1, 1]);
      await ledger.read(one);
      assert.deepEqual(await counts(), [1, 1, 1], 'others are not measured');
    });

    test('contain the age of the oldest write that is neither answered nor in doubt', async (t) => {
      const { database, ledger, readingOf, refreshFor } = await start(t);
      const age = () => readingOf('penstock_oldest_unfinished_seconds');
      await refreshFor(1);
      assert.equal(await age(), 0);
      const [claimed, answered, doubtful] = [newClaim(), newClaim(), newClaim()];
      await claimKinds(ledger, [claimed, answered, doubtful]);
      await Promise.all([answered, doubtful].map((one) => ledger.mark(mark(one))));
      await ledger.recordAnswer(sentTo(answered), answer);
      await ledger.markInDoubt(sentTo(doubtful), { why: 'no answer' });
      await database.query(`UPDATE ledger SET claimed_at = claimed_at - 90000 WHERE attempt <> $1`, [
        claimed.attempt,
      ]);
      await database.query(`UPDATE ledger SET claimed_at = claimed_at - 30000 WHERE attempt = $1`, [
        claimed.attempt,
      ]);
      await refreshFor(14);
      assert.equal(await age(), 0, 'is not read every second');
      await refreshFor(1);
      const seconds = (await age()) ?? 0;
      assert.ok(seconds >= 30 && seconds < 90, `${seconds} s`);
    });

    test('contain the size, and neither size nor age while the database is unavailable', async (t) => {
      const { database, readingOf, refreshFor } = await start(t);
      const values = () =>
        Promise.all(['penstock_database_bytes', 'penstock_oldest_unfinished_seconds'].map(readingOf));
      assert.deepEqual(await values(), [undefined, undefined], 'before the first reading');
      await refreshFor(1);
      const [bytes = 0, oldest] = await values();
      assert.ok(bytes > 50_000, `${bytes} bytes`);
      assert.equal(oldest, 0);
      await database.close();
      await refreshFor(60);
      assert.deepEqual(await values(), [undefined, undefined]);
    });

    test('contain the connections in use, and the statements that wait for one', {
      skip: name !== 'PostgreSQL',
    }, async (t) => {
      const { database, second, samplesOf } = await start(t);
      const counts = async () =>
        (await samplesOf('penstock_database_connections')).map(({ labels, value }) => [labels.state, value]);
      const waitForCounts = async (inUse: number, waiting: number) => {
        const expected = JSON.stringify([
          ['in_use', inUse],
          ['waiting', waiting],
        ]);
        const asExpected = async () => JSON.stringify(await counts()) === expected;
        await until(1_500, `the connections are ${expected}`, asExpected);
      };
      const [holder] = await second.query('SELECT pg_backend_pid() AS pid, pg_advisory_lock(1)');
      const locked = `SET LOCAL lock_timeout = '5s'; SELECT pg_advisory_xact_lock(1)`;
      const statements = Array.from({ length: 6 }, () => database.execute(locked));
      await waitForCounts(4, 2);
      await second.query('SELECT pg_terminate_backend($1)', [holder?.pid ?? 0]).catch(() => {}); // it gives the lock back
      await Promise.all(statements);
      await waitForCounts(0, 0);
    });
  });
