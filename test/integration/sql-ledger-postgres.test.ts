/** The ledger in PostgreSQL: its settings, locks, lost answers and restarts of the server. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Client } from 'pg';
import { createDatabaseHeartbeat } from '../../src/database-heartbeat.ts';
import { DatabaseError } from '../../src/store/database.ts';
import { createInstanceTable } from '../../src/store/instances.ts';
import { createLedgerTable, type NewClaim } from '../../src/store/ledger.ts';
import { migrate } from '../../src/store/migrations.ts';
import { createPaymentTable } from '../../src/store/payments.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { postgresProblems } from '../../src/store/postgres-settings.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import {
  again,
  answer,
  claimKinds,
  mark,
  newClaim,
  reportAs,
  send,
  sentTo,
  withPayment,
} from '../kit/ledger-claims.ts';
import { isPooled, newPostgresDatabase, skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { until, within } from '../kit/within.ts';

describe('the ledger in PostgreSQL', { skip: skipWithoutPostgres }, () => {
  async function startInstances(t: TestContext) {
    const url = await newPostgresDatabase();
    const databases = [connectPostgres(url), connectPostgres(url)] as const;
    t.after(async () => void (await Promise.all(databases.map((database) => database.close()))));
    await Promise.all(databases.map(migrate));
    return { url, databases };
  }

  test('is created once by two instances that start together', async (t) => {
    const { databases } = await startInstances(t);
    const rows = await databases[0].query('SELECT version FROM penstock_schema');
    assert.deepEqual(
      rows.map(({ version }) => version),
      [...rows.keys()].map((index) => index + 1),
    );
  });

  /** Two instances that report. */
  async function startReporting(t: TestContext) {
    const { databases } = await startInstances(t);
    const [database] = databases;
    const instances = {
      one: createInstanceTable(database, 'one'),
      two: createInstanceTable(database, 'two'),
    };
    return { database, ledger: createLedgerTable(database), ...instances };
  }

  test('claims nothing after a failover until all instances that lived before it have written back, have ended, or have had a minute', async (t) => {
    const { database, one, two } = await startReporting(t);
    /** Claims, and returns when the claim waits. */
    async function startWaiting(claim: NewClaim) {
      const waits = Promise.withResolvers<string>();
      const ledger = createLedgerTable({
        ...database,
        query(sql, values) {
          if (sql.includes('AS may_claim')) waits.resolve('waits'); // after a claim that has found no row
          return database.query(sql, values);
        },
      });
      const kinds = claimKinds(ledger, [claim]);
      assert.equal(await Promise.race([waits.promise, kinds.then(String)]), 'waits');
      return { kinds };
    }
    const before = await one.report();
    for (const id of ['two', 'dead']) await createInstanceTable(database, id).report();
    await database.query("UPDATE instance SET seen_at = seen_at - 60000 WHERE id = 'dead'");
    await database.query('UPDATE instance SET seen_at = seen_at - 7000'); // so long is the outage
    await database.query("UPDATE failover SET timeline = 'former'");
    const after = await one.report(before);
    assert.notEqual(after, before);
    await database.query('UPDATE failover SET noticed_at = noticed_at - 3001');
    const claimed = await startWaiting(newClaim({ instance: 'one' }));
    await one.report(after);
    assert.deepEqual(await database.query('SELECT 1 AS one FROM ledger'), []);
    assert.deepEqual(await one.lostInFailover(), [], 'there is still time');
    await two.report(after);
    assert.deepEqual(await claimed.kinds, ['claimed']);

    await two.report(before);
    const later = await startWaiting(newClaim({ instance: 'one' }));
    await database.query('UPDATE instance SET awaited_at = awaited_at - 50000');
    assert.deepEqual(await database.query('SELECT instance FROM ledger'), [{ instance: 'one' }]);
    await database.query("UPDATE instance SET seen_at = seen_at - 6001 WHERE id = 'two'");
    assert.deepEqual(await later.kinds, ['claimed']);
    assert.deepEqual(await one.lostInFailover(), ['two']);

    await two.report(before);
    const last = await startWaiting(newClaim({ instance: 'one' }));
    await database.query('UPDATE instance SET awaited_at = awaited_at - 10001');
    assert.deepEqual(await last.kinds, ['claimed']);
    assert.deepEqual(await one.lostInFailover(), ['two']);

    await database.query("UPDATE instance SET seen_at = seen_at - 60000 WHERE id = 'two'");
    await database.query("UPDATE failover SET timeline = 'another'");
    await one.report(await one.report(after));
    await database.query('UPDATE failover SET noticed_at = noticed_at - 10000');
    assert.deepEqual(await one.lostInFailover(), ['two'], 'a second failover does not hide the first loss');
  });

  test('keeps an instance awaited that needs long to write back, because it goes on reporting', async (t) => {
    const { database, one, two } = await startReporting(t);
    const writing = Promise.withResolvers<number>();
    const active = { environment: 'sandbox', version: 1 };
    let hasStarted = false;
    const heartbeat = createDatabaseHeartbeat({
      dialect: 'postgres',
      instances: one,
      prepare: async () => {},
      recent: {
        writeBack() {
          hasStarted = true;
          return writing.promise;
        },
        hasForgottenTooMuch: () => false,
        forgetOld() {},
      },
      readWarnings: async () => [],
      checkSchema: async () => {},
      activeEnvironment: { read: async () => active, restore: async () => {} },
      holds: { refresh: async () => {} },
      log() {},
    });
    t.after(() => heartbeat.stop());
    await heartbeat.first();
    await database.query("UPDATE failover SET timeline = 'former'");
    await two.report(await two.report());
    heartbeat.start();
    await until(10_000, 'it writes back', async () => hasStarted);
    const own = async () => (await database.query("SELECT * FROM instance WHERE id = 'one'"))[0];
    const noted = Number((await own())?.awaited_at);
    await database.query('UPDATE instance SET seen_at = seen_at - 60000');
    await until(10_000, 'it reports', async () => (await one.countLiving()) === 1);
    assert.equal((await own())?.awaited_at, noted);
    writing.resolve(0);
    await until(10_000, 'nobody waits for it', async () => (await own())?.awaited_at === null);
  });

  test('gives no payment away after a failover, until all instances have written back', async (t) => {
    const { database, ledger, one, two } = await startReporting(t);
    const before = await one.report();
    await two.report();
    const first = newClaim({ instance: 'one' });
    const second = again(first, { tenant: 'rival', instance: 'two' });
    const sentFirst = { ...sentTo(first), markedAtMs: performance.now() - 1_000 };
    await send(ledger, first);
    await send(ledger, second);
    await database.query('DELETE FROM ledger');
    await database.query("UPDATE failover SET timeline = 'former'");
    const after = await two.report(before);
    await two.report(after);
    await database.query('UPDATE failover SET noticed_at = noticed_at - 3001');
    // A bank that recognises the X-Request-ID answers both with the payment of the first one.
    const ofRival = ledger.recordAnswer(sentTo(second), withPayment('payment-1'));
    await assert.rejects(createPaymentTable(database).find('payment-1'), 'a guess could lead elsewhere');
    assert.equal(await ledger.restoreAnswer(sentFirst, withPayment('payment-1')), 'recorded');
    await one.report(after);
    assert.equal(await ofRival, 'in-doubt');
    assert.deepEqual(await database.query('SELECT tenant FROM payment'), [{ tenant: 'shop' }]);
  });

  test('has settings of its role, which are checked', {
    skip: isPooled && 'PgBouncer keeps older connections',
  }, async (t) => {
    const { url, databases } = await startInstances(t);
    const fresh = connectPostgres(url);
    t.after(() => fresh.close());
    assert.deepEqual(await postgresProblems(fresh), []);
    const [lockTimeout] = await fresh.query('SHOW lock_timeout');
    assert.equal(
      lockTimeout?.lock_timeout,
      '200ms',
      'shorter than a statement may take: the others of its batch have time',
    );
    await databases[0].execute(`
      DO $$ BEGIN
        EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET synchronous_commit = off', current_database());
        EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I RESET lock_timeout', current_database());
      END $$`);
    const other = connectPostgres(url);
    t.after(() => other.close());
    const problems = (await postgresProblems(other)).join('\n');
    assert.match(problems, /lock_timeout is not set.*\nsynchronous_commit is off/);
  });

  test('is marked in place, even if all rows of a page are marked at once', async (t) => {
    const { url, databases } = await startInstances(t);
    const ended = connectPostgres(url);
    const ledger = createLedgerTable(ended);
    const claims = Array.from({ length: 300 }, () => newClaim());
    await claimKinds(ledger, claims);
    await Promise.all(claims.map((claim) => ledger.mark(mark(claim))));
    await ended.close(); // a session reports its statistics at its end
    const counts = async () => {
      const [row] = await databases[0].query(
        `SELECT n_tup_upd AS updates, n_tup_hot_upd AS in_place FROM pg_stat_user_tables WHERE relname = 'ledger'`,
      );
      return row;
    };
    await until(10_000, 'the marks are counted', async () => (await counts())?.updates === claims.length);
    const inPlace = Number((await counts())?.in_place);
    // A marked row is a little longer than a claimed one, so that the last one of a page has no place.
    assert.ok(inPlace > 0.9 * claims.length, `${inPlace} of ${claims.length} in place`);
  });

  test('does not let a locked row hold the others of its batch', async (t) => {
    const url = await newMigratedPostgres();
    const fresh = connectPostgres(url); // with the settings of the role
    t.after(() => fresh.close());
    const ledger = createLedgerTable(fresh);
    const locked = newClaim();
    const others = Array.from({ length: 5 }, () => newClaim());
    for (const one of [locked, ...others]) await send(ledger, one);
    const lock = new Client(url);
    await lock.connect();
    lock.on('error', () => {}); // the database is dropped at the end
    t.after(() => lock.end());
    await lock.query('BEGIN');
    await lock.query('SELECT * FROM ledger WHERE attempt = $1 FOR UPDATE', [locked.attempt]);
    const stuck = ledger.recordAnswer(sentTo(locked), { ...answer, created: undefined });
    const outcomes = others.map((one) => ledger.recordAnswer(sentTo(one), { ...answer, created: undefined }));
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(['recorded']));
    await assert.rejects(stuck, (error) => error instanceof DatabaseError && error.effect === 'none');
    await lock.query('COMMIT');
    assert.equal(await ledger.recordAnswer(sentTo(locked), { ...answer, created: undefined }), 'recorded');
  });

  test('releases a write whose mark is executed at the same time', async (t) => {
    const url = await newMigratedPostgres();
    const database = connectPostgres(url);
    t.after(() => database.close());
    const ledger = createLedgerTable(database);
    const claim = newClaim();
    assert.deepEqual(await claimKinds(ledger, [claim]), ['claimed']);
    const marking = new Client(url);
    await marking.connect();
    marking.on('error', () => {}); // the database is dropped at the end
    t.after(() => marking.end());
    await marking.query('BEGIN');
    await marking.query(`UPDATE ledger SET step = 'sending', marked_at = now_ms() WHERE attempt = $1`, [
      claim.attempt,
    ]);
    const released = ledger.release(claim).catch(() => ledger.release(claim)); // as a gateway whose statement had to wait too long
    await until(10_000, 'the release waits for the mark', async () => {
      const { rows } = await marking.query(`SELECT 1 FROM pg_locks WHERE NOT granted`);
      return rows.length > 0;
    });
    await marking.query('COMMIT');
    await released;
    assert.equal((await ledger.read(claim))?.step, 'released');
  });

  test('recovers nothing of others before an instance has reported for six seconds without a gap', async (t) => {
    const { databases } = await startInstances(t);
    const [database] = databases;
    const ledger = createLedgerTable(database);
    const [left, alive] = [newClaim({ instance: 'two' }), newClaim({ instance: 'one' })];
    for (const id of ['one', 'two']) await reportAs(database, id);
    const own = createInstanceTable(database, 'one');
    for (const one of [left, alive]) await send(ledger, one);
    /** As if the database had been unreachable for a minute. */
    const pass = (id: string, ms: number) =>
      database.query('UPDATE instance SET seen_at = seen_at - $2 WHERE id = $1', [id, ms]);
    await pass('one', 60_000);
    await pass('two', 60_000);
    await own.report();
    assert.equal(await own.countLiving(), 1);
    assert.deepEqual(await own.recover(() => true), [], 'the first one back');
    await database.query('UPDATE instance SET reporting_since = reporting_since - 6000 WHERE id = $1', [
      'one',
    ]);
    assert.equal((await own.recover(() => true)).length, 1);
    assert.equal((await ledger.read(left))?.step, 'in-doubt');
    assert.equal((await ledger.read(alive))?.step, 'sending');
    await own.deregister();
    assert.equal(await own.countLiving(), 0);
  });

  test('has no deadlock when two instances claim the same keys in opposite orders', async (t) => {
    const { databases } = await startInstances(t);
    const [one, other] = [createLedgerTable(databases[0]), createLedgerTable(databases[1])];
    for (const instance of ['one', 'two']) await reportAs(databases[0], instance);
    for (let round = 0; round < 40; round++) {
      const claims = Array.from({ length: 30 }, () => newClaim());
      const mirrored = claims.map((claim) => again(claim, { instance: 'two' })).reverse();
      const outcomes = await Promise.all([...claims.map(one.claim), ...mirrored.map(other.claim)]);
      assert.equal(outcomes.filter(({ kind }) => kind === 'claimed').length, 30);
      assert.equal(outcomes.filter(({ kind }) => kind === 'exists').length, 30);
    }
  });

  test('reports an unknown outcome if no answer arrives, and a repetition finds out', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    const { hostname, port } = new URL(server.url);
    const proxy = await startTcpProxy(t, Number(port));
    const [direct, behindProxy] = [
      connectPostgres(server.url),
      connectPostgres(server.url.replace(`${hostname}:${port}`, `127.0.0.1:${proxy.port}`)),
    ];
    t.after(async () => void (await Promise.all([direct, behindProxy].map((database) => database.close()))));
    await migrate(direct);
    await reportAs(direct, 'one');
    const [ledger, cutOff] = [createLedgerTable(direct), createLedgerTable(behindProxy)];
    const [claim, sent] = [newClaim(), newClaim()];
    await cutOff.claim(claim);
    await send(ledger, sent);
    proxy.discardResponses();
    const isUnknown = (error: unknown) => error instanceof DatabaseError && error.effect === 'unknown';
    await assert.rejects(within(20_000, 'an error', cutOff.mark(mark(claim))), isUnknown);
    await until(10_000, 'the database has the mark, which nobody may rely on', async () => {
      return (await ledger.read(claim))?.step === 'sending';
    });
    assert.deepEqual(await claimKinds(ledger, [again(claim)]), ['exists: sending']);
    await assert.rejects(within(20_000, 'an error', cutOff.recordAnswer(sentTo(sent), answer)));
    assert.equal(
      await ledger.recordAnswer(sentTo(sent), answer),
      'recorded',
      'repeated, on another connection',
    );
  });

  for (const [what, sql] of [
    ['a pooler gives its connection to another client', 'DEALLOCATE ALL'],
    ['a migration changes the type of a column', 'ALTER TABLE ledger ALTER COLUMN status TYPE bigint'],
  ] as const)
    test(`executes its statements without preparing them if ${what}`, async (t) => {
      const database = connectPostgres(await newMigratedPostgres(), { connections: 1 });
      t.after(() => database.close());
      await reportAs(database, 'one');
      const ledger = createLedgerTable(database);
      const countPrepared = async () =>
        (await database.query("SELECT 1 AS one FROM pg_prepared_statements WHERE name LIKE 'penstock%'"))
          .length;
      const first = newClaim();
      await send(ledger, first);
      await ledger.read(first);
      assert.equal(await countPrepared(), 3, 'claim, mark and read');
      await database.query(sql);
      assert.equal((await ledger.read(first))?.step, 'sending');
      await send(ledger, newClaim());
      assert.equal(await ledger.recordAnswer(sentTo(first), answer), 'recorded');
    });

  test('keeps its prepared statements when the migration of a newer version adds columns', async (t) => {
    const database = connectPostgres(await newMigratedPostgres(), { connections: 1 });
    t.after(() => database.close());
    await reportAs(database, 'one');
    const [ledger, payments] = [createLedgerTable(database), createPaymentTable(database)];
    /** How often prepared statements were executed. */
    const countExecuted = async () => {
      const [row] = await database.query(
        "SELECT sum(generic_plans + custom_plans)::integer AS executed FROM pg_prepared_statements WHERE name LIKE 'penstock%'",
      );
      return Number(row?.executed);
    };
    /** With the statements whose rows are read. */
    const pay = async (paymentId: string) => {
      const claim = newClaim();
      await send(ledger, claim);
      assert.equal(await ledger.recordAnswer(sentTo(claim), withPayment(paymentId)), 'recorded');
      assert.equal((await ledger.read(claim))?.step, 'answered');
      assert.equal((await payments.find(paymentId)).length, 1);
      const [left, own] = [newClaim(), createInstanceTable(database, 'one')];
      await send(ledger, left);
      assert.equal((await own.recover(() => false)).length, 1);
    };
    await pay('before');
    const executed = await countExecuted();
    assert.ok(executed > 5, 'claim, mark, answer, read, find and abandon');
    for (const table of ['ledger', 'payment', 'instance'])
      await database.query(`ALTER TABLE ${table} ADD COLUMN of_next_version text NOT NULL DEFAULT 'new'`);
    await pay('after');
    assert.equal(await countExecuted(), 2 * executed);
  });

  test('survives a restart of the server, and keeps what was confirmed', async (t) => {
    const server = await startPostgres(t);
    const database = connectPostgres(server.url);
    t.after(() => database.close());
    await migrate(database);
    await reportAs(database, 'one');
    const ledger = createLedgerTable(database);
    const claim = newClaim();
    await send(ledger, claim);
    await server.kill();
    await assert.rejects(ledger.claim(newClaim()), DatabaseError);
    await server.restart();
    await until(20_000, 'it serves again', () =>
      ledger.recordAnswer(sentTo(claim), answer).then(
        (outcome) => outcome === 'recorded',
        () => false,
      ),
    );
    assert.equal((await ledger.read(claim))?.step, 'answered');
  });
});
