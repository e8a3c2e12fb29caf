/** Migrations of a newer version while instances use the database: what they wait for, and whom they exclude. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createInstanceTable } from '../../src/store/instances.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { call } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { answer, newClaim, reportAs, send, sentTo } from '../kit/ledger-claims.ts';
import { contraction, createNextVersion, expansion } from '../kit/next-version.ts';
import { connectOther, skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

describe('the migration of a newer version', { skip: skipWithoutPostgres }, () => {
  async function start(t: TestContext) {
    const postgres = await newMigratedPostgres();
    const database = connectPostgres(postgres);
    t.after(() => database.close());
    const settings = { postgres, file: null };
    return { postgres, settings, database };
  }

  test('waits for a long transaction, and fails no payment in that time', async (t) => {
    const { postgres, settings, database } = await start(t);
    await reportAs(database, 'one');
    const ledger = createLedgerTable(database);
    const other = await connectOther(t, postgres);
    await other.query('BEGIN');
    await other.query('SELECT count(*) FROM ledger');

    const { migrateDatabase } = await createNextVersion(t, expansion).load();
    let isOver = false;
    const migrated = migrateDatabase(settings).finally(() => {
      isOver = true;
    });
    let [waits, payments] = [0, 0];
    const isWaiting = async () => {
      const { rows } = await other.query(
        "SELECT FROM pg_locks WHERE relation = 'ledger'::regclass AND NOT granted AND mode = 'AccessExclusiveLock'",
      );
      return rows.length > 0;
    };
    const pay = async () => {
      const claim = newClaim();
      await send(ledger, claim);
      assert.equal(await ledger.recordAnswer(sentTo(claim), { ...answer, created: undefined }), 'recorded');
      payments += 1;
    };
    while (waits < 5) {
      await until(10_000, 'the migration waits for the lock', isWaiting);
      waits += 1;
      await Promise.all([pay(), pay(), pay()]);
      await until(10_000, 'it waits no longer', async () => !(await isWaiting()));
    }
    assert.ok(!isOver);
    await other.query('COMMIT');
    while (!isOver) await pay();
    assert.deepEqual(await migrated, { from: 1, to: 2 });
    await pay();
    assert.ok(payments > 15);
  });

  test('may take longer than a statement of a payment', async (t) => {
    const { settings } = await start(t);
    const { migrateDatabase } = await createNextVersion(t, { oldest: 1, sql: 'SELECT pg_sleep(2.5)' }).load();
    assert.deepEqual(await migrateDatabase(settings), { from: 1, to: 2 });
  });

  test('that excludes a running instance is refused with its name, and changes nothing until it has ended', async (t) => {
    const { postgres, settings, database } = await start(t);
    const reportOf = (id: string, ms: number) =>
      `INSERT INTO instance (id, seen_at, reporting_since, schema_version) VALUES ('${id}', now_ms() + ${ms}, now_ms(), 1)`;
    await database.query(reportOf('ended', -60_000));
    const other = await connectOther(t, postgres);
    const { migrateDatabase } = await createNextVersion(t, expansion, contraction).load();

    await other.query('BEGIN');
    await other.query(reportOf('living', 60_000)); // and for the next minute
    const refused = migrateDatabase(settings);
    await until(10_000, 'the migration waits for the report', async () => {
      const { rows } = await other.query(
        "SELECT FROM pg_locks WHERE relation = 'instance'::regclass AND NOT granted AND mode = 'ShareLock'",
      );
      return rows.length > 0;
    });
    await other.query('COMMIT');
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof Error && error.cause instanceof Error, String(error));
      assert.match(
        error.cause.message,
        /schema version 3 cannot be used by instances that are running: stop living, or replace them/,
      );
      return true;
    });
    assert.deepEqual(await database.query('SELECT version, oldest FROM penstock_schema ORDER BY version'), [
      { version: 1, oldest: 1 },
      { version: 2, oldest: 1 },
    ]);
    await createInstanceTable(database, 'living').deregister();
    assert.deepEqual(await migrateDatabase(settings), { from: 2, to: 3 });
  });

  test('that excludes a running instance by force makes it refuse writes, and it is not ready', async (t) => {
    const { database, postgres } = await start(t);
    const bank = await startBank(t);
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      state: { postgres },
    });
    assert.equal((await call(gateway.url, initiation)).status, 201);

    await database.query('INSERT INTO penstock_schema (version, oldest) VALUES (2, 2)');
    const ready = () => call(gateway.adminUrl, { method: 'GET', path: '/health/ready' });
    await until(3_000, 'it is not ready', async () => (await ready()).status === 503);
    assert.match(
      (await ready()).text,
      /has schema version 2, which only versions of Penstock that know 2 or a later one can use; this one knows 1: start a newer version/,
    );
    const refused = await call(gateway.url, initiation);
    assert.deepEqual([refused.status, refused.header('Penstock-Error')], [503, 'STATE_UNAVAILABLE']);
    assert.equal(bank.payments.length, 1);
  });
});
