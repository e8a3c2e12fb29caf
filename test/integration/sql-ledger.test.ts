/** The contract of the ledger in a database: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Database, DatabaseError } from '../../src/store/database.ts';
import { createLedger, type Ledger, type NewClaim } from '../../src/store/ledger.ts';
import { migrate, schemaVersionOf } from '../../src/store/migrations.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { newPostgresDatabase, skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until, within } from '../kit/within.ts';

const life = scopeOfAllTests();

interface Kind {
  readonly skip: string | false;
  /** Opens connections of several instances; SQLite has one. */
  open(t: TestContext): Promise<readonly [Database, Database]>;
}

const kinds: Readonly<Record<string, Kind>> = {
  'SQLite in memory': {
    skip: false,
    open: async () => {
      const database = openSqlite(':memory:');
      return [database, database];
    },
  },
  'a SQLite file': {
    skip: false,
    open: async (t) => {
      const database = openSqlite(join(temporaryFolder(t), 'penstock.db'));
      return [database, database];
    },
  },
  PostgreSQL: {
    skip: skipWithoutPostgres,
    open: async (t) => {
      const url = await newPostgresDatabase(life, t);
      return [connectPostgres(url), connectPostgres(url)];
    },
  },
};

const newClaim = (more: Partial<NewClaim> = {}): NewClaim => ({
  tenant: 'shop',
  operation: 'initiatePayment',
  payment: '',
  requestId: randomUUID(),
  attempt: randomUUID(),
  instance: 'one',
  path: '/berlingroup/v1/payments/sepa-credit-transfers',
  fingerprintKey: undefined,
  fingerprintRequest: 'request',
  fingerprintContent: 'content',
  followsReleased: false,
  ...more,
});

const answer = {
  status: 201,
  headers: '[["Content-Type","application/json"]]',
  body: Buffer.from([0, 1, 255]),
  paymentId: 'payment-1',
  outcome: 'accepted',
  why: undefined,
};

const again = (claim: NewClaim, more: Partial<NewClaim> = {}) => ({
  ...claim,
  attempt: randomUUID(),
  ...more,
});

for (const [name, { skip, open }] of Object.entries(kinds))
  describe(`the ledger in ${name}`, { skip }, () => {
    async function start(t: TestContext) {
      const [database, second] = await open(t);
      t.after(async () => {
        await database.close();
        if (second !== database) await second.close();
      });
      await migrate(database);
      const refuse = (cause: Error) => assert.fail(cause);
      const [ledger, other] = [createLedger(database, refuse), createLedger(second, refuse)];
      await ledger.heartbeat('one');
      await ledger.heartbeat('two');
      return { database, ledger, other };
    }

    /** The kinds of the outcomes, and the step of a row that exists. */
    const claimKinds = async (ledger: Ledger, claims: readonly NewClaim[]) =>
      (await ledger.claim(claims)).map((outcome) =>
        outcome.kind === 'exists' ? `exists: ${outcome.row.step}` : outcome.kind,
      );

    const send = async (ledger: Ledger, claim: NewClaim, listenMs = 60_000) => {
      assert.deepEqual(await claimKinds(ledger, [claim]), ['claimed']);
      const marked = await ledger.markSending([{ ...claim, environment: 'sandbox', listenMs }]);
      assert.deepEqual([...marked], [claim.attempt]);
    };

    test('has the newest schema, and migrates it once', async (t) => {
      const { database } = await start(t);
      const version = await schemaVersionOf(database);
      await migrate(database);
      assert.equal(await schemaVersionOf(database), version);
      assert.ok(version >= 1);
    });

    test('refuses a schema of a later version', async (t) => {
      const { database } = await start(t);
      await database.query('INSERT INTO penstock_schema (version) VALUES (1000)');
      await assert.rejects(migrate(database), /schema version 1000.*start a newer version/);
    });

    test('stores an answer for repeats, byte for byte', async (t) => {
      const { ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      assert.equal((await ledger.recordAnswers([{ ...claim, ...answer }])).size, 1);
      const [outcome] = await ledger.claim([again(claim)]);
      assert.ok(outcome?.kind === 'exists');
      const { row } = outcome;
      assert.deepEqual(
        [row.step, row.status, row.headers, row.payment_id, row.attempt, row.environment],
        ['answered', 201, answer.headers, 'payment-1', claim.attempt, 'sandbox'],
      );
      assert.deepEqual(Buffer.from(row.body as Buffer), answer.body);
    });

    test('claims a key once among a hundred equal requests, on two instances, in one batch and in several', async (t) => {
      const { ledger, other } = await start(t);
      const claim = newClaim();
      const batches = Array.from({ length: 10 }, (_, index) => {
        const claims = Array.from({ length: 10 }, () =>
          again(claim, index % 2 === 0 ? {} : { requestId: claim.requestId.toUpperCase() }),
        );
        return claimKinds(index % 3 === 0 ? ledger : other, claims);
      });
      const all = (await Promise.all(batches)).flat();
      assert.equal(all.filter((kind) => kind === 'claimed').length, 1, all.join());
      assert.equal(all.filter((kind) => kind === 'exists: claimed').length, 99);
    });

    test('keeps the keys of tenants, operations and payments apart', async (t) => {
      const { ledger } = await start(t);
      const claim = newClaim();
      const others = [
        claim,
        again(claim, { tenant: 'rival' }),
        again(claim, { operation: 'cancelPayment', payment: 'payment-1' }),
        again(claim, { operation: 'cancelPayment', payment: 'payment-2' }),
      ];
      assert.deepEqual(await claimKinds(ledger, others), ['claimed', 'claimed', 'claimed', 'claimed']);
    });

    test('returns the active environment with the claim', async (t) => {
      const { database, ledger } = await start(t);
      const [without] = await ledger.claim([newClaim()]);
      await database.query('INSERT INTO active_environment VALUES ($1, $2, $3)', [true, 'production', 3]);
      const [withOne] = await ledger.claim([newClaim()]);
      assert.deepEqual(
        [without, withOne].map((outcome) => outcome?.kind === 'claimed' && outcome.activeEnvironment),
        [undefined, 'production'],
      );
    });

    test('gives a claimed row of a dead instance to another attempt, and never a marked one', async (t) => {
      const { ledger } = await start(t);
      const [claimed, marked, living] = [
        newClaim({ instance: 'dead' }),
        newClaim({ instance: 'dead' }),
        newClaim(),
      ];
      await ledger.heartbeat('dead');
      await send(ledger, marked);
      await ledger.claim([claimed, living]);
      assert.deepEqual(await claimKinds(ledger, [again(claimed)]), ['exists: claimed'], 'it lives');
      await ledger.deregister('dead');
      const later = again(claimed);
      assert.deepEqual(await claimKinds(ledger, [later, again(marked), again(living)]), [
        'claimed',
        'exists: sending',
        'exists: claimed',
      ]);
      const mark = { environment: 'sandbox', listenMs: 1 };
      assert.equal(
        (await ledger.markSending([{ ...claimed, ...mark }])).size,
        0,
        'the dead attempt sends nothing',
      );
      assert.equal((await ledger.markSending([{ ...later, ...mark }])).size, 1);
    });

    test('puts in doubt what a dead instance was sending, deletes what it had claimed, and leaves that of living ones', async (t) => {
      const { ledger } = await start(t);
      const [claimed, sending, answered, living] = [
        newClaim({ instance: 'dead' }),
        newClaim({ instance: 'dead' }),
        newClaim({ instance: 'dead' }),
        newClaim({ instance: 'two' }),
      ];
      await ledger.heartbeat('dead');
      await ledger.claim([claimed]);
      for (const one of [sending, answered, living]) await send(ledger, one);
      await ledger.recordAnswers([{ ...answered, ...answer }]);
      await ledger.deregister('dead');
      assert.deepEqual(
        (await ledger.recover('one')).map(({ attempt }) => attempt),
        [sending.attempt],
      );
      assert.deepEqual(await ledger.recover('one'), []);
      assert.deepEqual(
        await claimKinds(ledger, [again(claimed), again(sending), again(answered), again(living)]),
        ['claimed', 'exists: in-doubt', 'exists: answered', 'exists: sending'],
      );
      const listed = await ledger.inDoubt(10);
      assert.deepEqual(
        listed.map(({ attempt, why }) => [attempt, why]),
        [[sending.attempt, 'the gateway instance that sent it has ended']],
      );
    });

    test('stores the late answer of a write in doubt, but not of another attempt', async (t) => {
      const { ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      assert.equal((await ledger.markInDoubt([{ ...claim, why: 'no answer' }])).size, 1);
      assert.equal((await ledger.recordAnswers([{ ...again(claim), ...answer }])).size, 0);
      assert.equal((await ledger.recordAnswers([{ ...claim, ...answer }])).size, 1);
      assert.deepEqual(await ledger.inDoubt(10), []);
      assert.equal(
        (await ledger.recordAnswers([{ ...claim, ...answer, status: 500 }])).size,
        0,
        'the first one stays',
      );
    });

    test('resolves as happened with the payment, and as not happened only after the answer can no longer arrive', async (t) => {
      const { ledger } = await start(t);
      const [happened, early, late] = [newClaim(), newClaim(), newClaim()];
      await send(ledger, happened);
      await send(ledger, early);
      await send(ledger, late, -1_000);
      await ledger.markInDoubt([happened, early, late].map((one) => ({ ...one, why: 'no answer' })));
      assert.deepEqual(
        [...(await ledger.resolveHappened([{ ...happened, paymentId: 'payment-9' }]))],
        [happened.attempt],
      );
      assert.deepEqual([...(await ledger.resolveNotHappened([early, late]))], [late.attempt]);
      const [outcome] = await ledger.claim([again(happened)]);
      assert.ok(outcome?.kind === 'exists');
      assert.deepEqual([outcome.row.step, outcome.row.payment_id], ['happened', 'payment-9']);
      assert.deepEqual(await claimKinds(ledger, [again(early), again(late)]), [
        'exists: in-doubt',
        'claimed',
      ]);
    });

    test('releases a write that was not sent or not processed, and none that is answered', async (t) => {
      const { ledger } = await start(t);
      const [claimed, sending, answered] = [newClaim(), newClaim(), newClaim()];
      await ledger.claim([claimed]);
      await send(ledger, sending);
      await send(ledger, answered);
      await ledger.recordAnswers([{ ...answered, ...answer }]);
      const all = [claimed, sending, answered];
      assert.deepEqual(await ledger.release(all), new Set([claimed.attempt, sending.attempt]));
      assert.deepEqual(
        await claimKinds(
          ledger,
          all.map((one) => again(one)),
        ),
        ['claimed', 'claimed', 'exists: answered'],
      );
    });

    test('deletes answered writes after their window, and no write in doubt or unanswered', async (t) => {
      const { ledger } = await start(t);
      const [answered, failed, sending] = [newClaim(), newClaim(), newClaim()];
      for (const one of [answered, failed, sending]) await send(ledger, one);
      await ledger.recordAnswers([
        { ...answered, ...answer },
        { ...failed, ...answer, status: 504, why: 'the bank answered 504' },
      ]);
      assert.equal(await ledger.deleteExpired(60_000, 100), 0);
      assert.equal(await ledger.deleteExpired(-1_000, 100), 1);
      assert.equal((await ledger.read([answered, failed, sending])).length, 2);
    });

    test('stores the other writes of a batch if one cannot be stored', async (t) => {
      const { ledger } = await start(t);
      const claims = [newClaim(), newClaim({ path: nameWithZero }), newClaim()];
      const outcomes = await claimKinds(ledger, claims);
      assert.deepEqual([outcomes[0], outcomes[2]], ['claimed', 'claimed']);
      assert.equal(outcomes[1], name === 'PostgreSQL' ? 'refused' : 'claimed', 'PostgreSQL stores no NUL');
    });
  });

const nameWithZero = 'a\0b';

describe('the ledger in PostgreSQL', { skip: skipWithoutPostgres }, () => {
  test('has no deadlock when two instances claim the same keys in opposite orders', async (t) => {
    const url = await newPostgresDatabase(life, t);
    const databases = [connectPostgres(url), connectPostgres(url)] as const;
    t.after(async () => void (await Promise.all(databases.map((database) => database.close()))));
    await migrate(databases[0]);
    const [one, other] = [createLedger(databases[0]), createLedger(databases[1])];
    for (const instance of ['one', 'two']) await one.heartbeat(instance);
    for (let round = 0; round < 40; round++) {
      const claims = Array.from({ length: 30 }, () => newClaim());
      const mirrored = claims
        .map((claim) => ({ ...claim, attempt: randomUUID(), instance: 'two' }))
        .reverse();
      const outcomes = (await Promise.all([one.claim(claims), other.claim(mirrored)])).flat();
      assert.equal(outcomes.filter(({ kind }) => kind === 'claimed').length, 30);
      assert.equal(outcomes.filter(({ kind }) => kind === 'exists').length, 30);
    }
  });

  test('reports an unknown outcome if no answer arrives, and what was confirmed is there', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    const { hostname, port } = new URL(server.url);
    const proxy = await startTcpProxy(t, Number(port));
    const [direct, behindProxy] = [
      connectPostgres(server.url),
      connectPostgres(server.url.replace(`${hostname}:${port}`, `127.0.0.1:${proxy.port}`)),
    ];
    t.after(async () => void (await Promise.all([direct, behindProxy].map((database) => database.close()))));
    await migrate(direct);
    const [ledger, cutOff] = [createLedger(direct), createLedger(behindProxy)];
    await ledger.heartbeat('one');
    const claim = newClaim();
    await cutOff.claim([claim]);
    proxy.discardResponses();
    const mark = cutOff.markSending([{ ...claim, environment: 'sandbox', listenMs: 1_000 }]);
    await assert.rejects(
      within(20_000, 'an error', mark),
      (error) => error instanceof DatabaseError && !error.isRefused,
    );
    await until(10_000, 'the database has the mark, which nobody may rely on', async () => {
      const [row] = await ledger.read([claim]);
      return row?.step === 'sending';
    });
    assert.deepEqual((await ledger.markSending([{ ...claim, environment: 'sandbox', listenMs: 1 }])).size, 0);
  });

  test('survives a restart of the server, and keeps what was confirmed', async (t) => {
    const server = await startPostgres(t);
    const problems: string[] = [];
    const database = connectPostgres(server.url, (why) => problems.push(why));
    t.after(() => database.close());
    await migrate(database);
    const ledger = createLedger(database);
    await ledger.heartbeat('one');
    const claim = newClaim();
    await ledger.claim([claim]);
    await ledger.markSending([{ ...claim, environment: 'sandbox', listenMs: 1_000 }]);
    await server.kill();
    await assert.rejects(ledger.claim([newClaim()]), DatabaseError);
    await server.restart();
    await until(20_000, 'it serves again', () =>
      ledger.recordAnswers([{ ...claim, ...answer }]).then(
        (stored) => stored.size === 1,
        () => false,
      ),
    );
    assert.equal((await ledger.read([claim]))[0]?.step, 'answered');
  });
});
