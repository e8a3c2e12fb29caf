/** The contract of the ledger in a database: the same tests on SQLite in memory, on a SQLite file, and on PostgreSQL. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { Database } from '../../src/store/database.ts';
import { createInstanceTable } from '../../src/store/instances.ts';
import { createLedgerTable, type NewClaim } from '../../src/store/ledger.ts';
import { migrate, readSchema } from '../../src/store/migrations.ts';
import { databaseKinds } from '../kit/databases.ts';
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

const nameWithZero = 'a\0b';

const notStored = {
  'has a NUL': { paymentId: nameWithZero, why: /cannot be stored: PostgreSQL: invalid byte sequence/ },
  'is too long for the index': {
    paymentId: randomBytes(2_250).toString('base64'), // PostgreSQL would compress a regular one
    why: /cannot be stored: PostgreSQL: index row size \d+ exceeds/,
  },
} as const;

for (const [name, { skip, open }] of Object.entries(databaseKinds))
  describe(`the ledger in ${name}`, { skip }, () => {
    async function start(t: TestContext) {
      const [database, second] = await open(t);
      const [ledger, other] = [createLedgerTable(database), createLedgerTable(second)];
      const instances = new Map(
        ['one', 'two', 'dead'].map((id) => [id, createInstanceTable(second, id)] as const),
      );
      const kill = (id: string) => database.query('UPDATE instance SET seen_at = 0 WHERE id = $1', [id]);
      for (const id of instances.keys()) await reportAs(database, id);
      return { database, ledger, other, instances, kill };
    }

    test('has the newest schema, and migrates it once', async (t) => {
      const { database } = await start(t);
      const schema = await readSchema(database);
      await migrate(database);
      assert.deepEqual(await readSchema(database), schema);
      assert.ok(schema.version >= 1);
    });

    test('leaves a schema of a later version as it is, and refuses one that excludes this version', async (t) => {
      const { database } = await start(t);
      await database.query('INSERT INTO penstock_schema (version, oldest) VALUES (999, 1)');
      await migrate(database);
      assert.deepEqual(await readSchema(database), { version: 999, oldest: 1 });
      await database.query('INSERT INTO penstock_schema (version, oldest) VALUES (1000, 2)');
      await assert.rejects(migrate(database), {
        reason:
          'the database has schema version 1000, which only versions of Penstock that know 2 or a later one can use; this one knows 1: start a newer version',
      });
    });

    test('stores an answer for repeats, byte for byte, and the payment that it names', async (t) => {
      const { database, ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'recorded');
      const outcome = await ledger.claim(again(claim));
      assert.ok(outcome.kind === 'exists');
      const { row } = outcome;
      assert.deepEqual(
        [row.step, row.status, row.headers, row.payment_id, row.attempt, row.environment],
        ['answered', 201, answer.headers, 'payment-1', claim.attempt, 'sandbox'],
      );
      assert.deepEqual(Buffer.from(row.body as Buffer), answer.body);
      const payments = await database.query(
        'SELECT payment_id, environment, tenant, initiated_as FROM payment',
      );
      assert.deepEqual(
        payments.map((payment) => ({ ...payment })),
        [
          {
            payment_id: 'payment-1',
            environment: 'sandbox',
            tenant: 'shop',
            initiated_as: 'payments/sepa-credit-transfers',
          },
        ],
      );
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
      const without = await ledger.claim(newClaim());
      await database.query('INSERT INTO active_environment VALUES ($1, $2, $3)', [true, 'production', 3]);
      const withOne = await ledger.claim(newClaim());
      assert.deepEqual(
        [without, withOne].map((outcome) => outcome.kind === 'claimed' && outcome.activeEnvironment),
        [undefined, 'production'],
      );
    });

    test('gives a claimed row of a dead instance to another attempt, and never a marked one', async (t) => {
      const { ledger, kill } = await start(t);
      const [claimed, marked] = [newClaim({ instance: 'dead' }), newClaim({ instance: 'dead' })];
      const living = newClaim();
      await send(ledger, marked);
      await claimKinds(ledger, [claimed, living]);
      assert.deepEqual(await claimKinds(ledger, [again(claimed)]), ['exists: claimed'], 'it lives');
      await kill('dead');
      const later = again(claimed);
      assert.deepEqual(await claimKinds(ledger, [later, again(marked), again(living)]), [
        'claimed',
        'exists: sending',
        'exists: claimed',
      ]);
      assert.equal(await ledger.mark(mark(claimed)), false, 'the dead attempt sends nothing');
      assert.equal(await ledger.mark(mark(later)), true);
    });

    test('marks an attempt again when it is sent on another connection, and no other attempt', async (t) => {
      const { database, ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      await database.query(
        'UPDATE ledger SET marked_at = marked_at - 60000, listened_until = listened_until - 60000',
      );
      const first = await ledger.read(claim);
      assert.equal(await ledger.mark(mark(again(claim))), false, 'another attempt');
      assert.deepEqual((await ledger.read(claim))?.marked_at, first?.marked_at);
      assert.equal(await ledger.mark(mark(claim)), true);
      const second = await ledger.read(claim);
      assert.deepEqual([second?.step, second?.attempt], ['sending', claim.attempt]);
      for (const time of ['marked_at', 'listened_until'] as const)
        assert.ok(
          Number(second?.[time]) >= Number(first?.[time]) + 60_000,
          `${time} counts from the second mark`,
        );
    });

    test('marks no attempt again that has ended', async (t) => {
      const { ledger } = await start(t);
      const [answered, doubted, released] = [newClaim(), newClaim(), newClaim()];
      for (const one of [answered, doubted, released]) await send(ledger, one);
      await ledger.recordAnswer(sentTo(answered), answer);
      await ledger.markInDoubt(sentTo(doubted), { why: 'no answer' });
      await ledger.release(released);
      for (const one of [answered, doubted, released]) assert.equal(await ledger.mark(mark(one)), false);
      assert.deepEqual(
        await Promise.all([answered, doubted, released].map(async (one) => (await ledger.read(one))?.step)),
        ['answered', 'in-doubt', 'released'],
      );
    });

    test('puts in doubt what a dead instance was sending, deletes what it had claimed, and leaves that of living ones', async (t) => {
      const { ledger, instances, kill } = await start(t);
      const dead = () => newClaim({ instance: 'dead' });
      const [claimed, sending, answered] = [dead(), dead(), dead()];
      const living = newClaim({ instance: 'two' });
      await claimKinds(ledger, [claimed]);
      for (const one of [sending, answered, living]) await send(ledger, one);
      await ledger.recordAnswer(sentTo(answered), answer);
      await kill('dead');
      const recover = async () =>
        (await instances.get('one')?.recover(() => true))?.map(({ attempt }) => attempt);
      assert.deepEqual(await recover(), [sending.attempt]);
      assert.deepEqual(await recover(), []);
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

    test('recovers what an instance has left itself, because an answer of the database was lost', async (t) => {
      const { ledger, instances } = await start(t);
      const [claimed, sending, running] = [newClaim(), newClaim(), newClaim()];
      await claimKinds(ledger, [claimed]);
      await send(ledger, sending);
      await send(ledger, running);
      const recovered = await instances.get('one')?.recover((attempt) => attempt === running.attempt);
      assert.deepEqual(
        recovered?.map(({ attempt }) => attempt),
        [sending.attempt],
      );
      assert.deepEqual(await claimKinds(ledger, [again(claimed), again(sending), again(running)]), [
        'claimed',
        'exists: in-doubt',
        'exists: sending',
      ]);
    });

    test('stores the late answer of a write in doubt, and an answer once', async (t) => {
      const { ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      assert.equal(await ledger.markInDoubt(sentTo(claim), { why: 'no answer' }), 'recorded');
      assert.equal((await ledger.inDoubt(10)).length, 1);
      assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'recorded');
      assert.deepEqual(await ledger.inDoubt(10), []);
      assert.equal(await ledger.recordAnswer(sentTo(claim), { ...answer, status: 500 }), 'recorded');
      assert.equal((await ledger.read(claim))?.status, 201, 'the first one stays');
    });

    test('records an answer although the database has lost the mark, or the whole row', async (t) => {
      const { database, ledger } = await start(t);
      const [unmarked, lost, doubt] = [newClaim(), newClaim(), newClaim()];
      for (const one of [unmarked, lost, doubt]) await send(ledger, one);
      await database.query(
        `UPDATE ledger SET step = 'claimed', environment = NULL, marked_at = NULL WHERE attempt = $1`,
        [unmarked.attempt],
      );
      await database.query('DELETE FROM ledger WHERE attempt <> $1', [unmarked.attempt]);
      assert.equal(await ledger.recordAnswer(sentTo(lost), withPayment('payment-2')), 'recorded');
      assert.equal(await ledger.markInDoubt(sentTo(doubt), { why: 'no answer' }), 'recorded');
      assert.deepEqual(await claimKinds(ledger, [again(lost), again(doubt)]), [
        'exists: answered',
        'exists: in-doubt',
      ]);
      const row = await ledger.read(lost);
      assert.deepEqual(
        [row?.path, row?.environment, row?.fingerprint_content, row?.payment_id],
        [lost.path, 'sandbox', 'content', 'payment-2'],
      );
      assert.equal(
        await ledger.recordAnswer(sentTo(unmarked), { ...answer, created: undefined }),
        'recorded',
      );
    });

    test('takes its row back from another attempt that has sent nothing', async (t) => {
      const { database, ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      await database.query('DELETE FROM ledger');
      const other = again(claim);
      assert.deepEqual(await claimKinds(ledger, [other]), ['claimed']);
      assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'recorded');
      assert.equal(await ledger.mark(mark(other)), false, 'the other one is not sent');
      assert.deepEqual(await claimKinds(ledger, [again(claim)]), ['exists: answered']);
    });

    test('reports two attempts that have reached the bank, and keeps the doubt when the other one is answered', async (t) => {
      const { database, ledger } = await start(t);
      const claim = newClaim();
      await send(ledger, claim);
      await database.query('DELETE FROM ledger');
      const other = again(claim);
      await send(ledger, other);
      assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'two-attempts');
      assert.equal(await ledger.recordAnswer(sentTo(other), withPayment('payment-2')), 'recorded');
      const [listed] = await ledger.inDoubt(10);
      assert.deepEqual([listed?.attempt, listed?.payment_id], [other.attempt, 'payment-2']);
      assert.match(String(listed?.why), /another attempt with this X-Request-ID has reached sandbox, too/);
    });

    describe('two tenants', () => {
      /** The same X-Request-ID, of one tenant a second before the other. */
      async function sendOneAfterTheOther(t: TestContext) {
        const { database, ledger } = await start(t);
        const first = newClaim();
        const second = again(first, { tenant: 'rival' });
        for (const one of [first, second]) await send(ledger, one);
        const move = 'UPDATE ledger SET marked_at = marked_at - 1000 WHERE attempt = $1';
        await database.query(move, [first.attempt]);
        return { ledger, first, second };
      }

      test('the payment of one stays its own', async (t) => {
        const { ledger } = await start(t);
        const [own, foreign] = [newClaim(), newClaim({ tenant: 'rival' })];
        for (const one of [own, foreign]) await send(ledger, one);
        assert.equal(await ledger.recordAnswer(sentTo(own), answer), 'recorded');
        assert.equal(await ledger.recordAnswer(sentTo(foreign), answer), 'in-doubt');
        const row = await ledger.read(foreign);
        assert.deepEqual(
          [row?.step, row?.body, row?.headers, row?.payment_id],
          ['in-doubt', null, null, null],
        );
        assert.match(String(row?.why), /may belong to another tenant/);
      });

      test('equal ids in two environments are two payments', async (t) => {
        const { database, ledger } = await start(t);
        const [own, other] = [newClaim(), newClaim({ tenant: 'rival' })];
        await send(ledger, own);
        await claimKinds(ledger, [other]);
        await ledger.mark({ ...mark(other), environment: 'production' });
        assert.equal(await ledger.recordAnswer(sentTo(own), answer), 'recorded');
        assert.equal(await ledger.recordAnswer(sentTo(other, 'production'), answer), 'recorded');
        const payments = await database.query('SELECT environment, tenant FROM payment ORDER BY environment');
        assert.deepEqual(
          payments.map(({ environment, tenant }) => `${environment}: ${tenant}`),
          ['production: rival', 'sandbox: shop'],
        );
      });

      test('one X-Request-ID: the later one has its payment only if the earlier one has another', async (t) => {
        const { ledger, first, second } = await sendOneAfterTheOther(t);
        assert.equal(
          await ledger.recordAnswer(sentTo(second), withPayment('payment-2')),
          'in-doubt',
          'not known yet',
        );
        assert.equal(await ledger.recordAnswer(sentTo(first), withPayment('payment-1')), 'recorded');
        assert.equal(
          await ledger.recordAnswer(sentTo(second), withPayment('payment-1')),
          'in-doubt',
          'the same',
        );
        assert.equal(
          await ledger.recordAnswer(sentTo(second), withPayment('payment-2')),
          'recorded',
          'another',
        );
      });

      test('one X-Request-ID: the later one is in doubt if it is unknown which payment is that of the earlier one', async (t) => {
        const { ledger, first, second } = await sendOneAfterTheOther(t);
        await ledger.markInDoubt(sentTo(first), { why: 'no answer' });
        assert.equal(await ledger.resolveHappened(first), true, 'without its id');
        assert.equal(await ledger.recordAnswer(sentTo(second), answer), 'in-doubt');
      });

      test('one X-Request-ID: the earlier one need not wait for the later one', async (t) => {
        const { ledger, first } = await sendOneAfterTheOther(t);
        assert.equal(await ledger.recordAnswer(sentTo(first), answer), 'recorded');
      });

      /** In one millisecond: neither of the two is earlier. */
      async function sendAtOnce(t: TestContext) {
        const { database, ledger } = await start(t);
        const first = newClaim();
        const both = [first, again(first, { tenant: 'rival' })] as const;
        for (const one of both) await send(ledger, one);
        await database.query('UPDATE ledger SET marked_at = 1');
        return { ledger, both };
      }
      const waitMs = 20_000;

      test('one X-Request-ID, sent at once: two payments, because the second answer waits for the first one', async (t) => {
        const { ledger, both } = await sendAtOnce(t);
        const recorded = both.map((one, index) =>
          ledger.recordAnswer(sentTo(one), withPayment(`payment-${index}`), waitMs),
        );
        assert.deepEqual(await Promise.all(recorded), ['recorded', 'recorded']);
      });

      test('one X-Request-ID, sent at once: one payment belongs to one of them', async (t) => {
        const { ledger, both } = await sendAtOnce(t);
        const recorded = both.map((one) => ledger.recordAnswer(sentTo(one), answer, waitMs));
        assert.deepEqual((await Promise.all(recorded)).toSorted(), ['in-doubt', 'recorded']);
      });

      test('one X-Request-ID, sent at once: the doubt about one of them is a doubt about the other', async (t) => {
        const { ledger, both } = await sendAtOnce(t);
        const [shop, rival] = both;
        await ledger.markInDoubt(sentTo(rival), { why: 'no answer' });
        assert.equal(await ledger.recordAnswer(sentTo(shop), answer, waitMs), 'in-doubt');
      });

      test('one X-Request-ID: the later one waits, also with a late answer, until the earlier one is in doubt', async (t) => {
        const { ledger, first, second } = await sendOneAfterTheOther(t);
        await ledger.markInDoubt(sentTo(second), { why: 'no answer' });
        const recorded = ledger.recordAnswer(sentTo(second), withPayment('payment-2'), waitMs);
        await ledger.markInDoubt(sentTo(first), { why: 'no answer' });
        assert.equal(await recorded, 'in-doubt');
        assert.match(String((await ledger.read(second))?.why), /may belong to another tenant/);
      });

      test('one X-Request-ID: the later one waits no longer than it may', async (t) => {
        const { ledger, second } = await sendOneAfterTheOther(t);
        assert.equal(await ledger.recordAnswer(sentTo(second), answer, 1), 'in-doubt');
      });

      test('answers that name one payment, in one batch: one tenant has it', async (t) => {
        const { ledger } = await start(t);
        const both = [newClaim(), newClaim({ tenant: 'rival' })];
        for (const one of both) await send(ledger, one);
        const outcomes = await Promise.all(both.map((one) => ledger.recordAnswer(sentTo(one), answer)));
        assert.deepEqual(outcomes.toSorted(), ['in-doubt', 'recorded']);
      });

      test('an operator cannot give the payment of one to the other', async (t) => {
        const { ledger } = await start(t);
        const [own, foreign] = [newClaim(), newClaim({ tenant: 'rival' })];
        for (const one of [own, foreign]) await send(ledger, one);
        await ledger.recordAnswer(sentTo(own), answer);
        await ledger.markInDoubt(sentTo(foreign), { why: 'no answer' });
        assert.equal(await ledger.resolveHappened(foreign, answer.created), false);
        assert.equal(await ledger.resolveHappened(foreign, withPayment('payment-2').created), true);
      });
    });

    test('resolves as happened with the payment, and as not happened only after the answer can no longer arrive', async (t) => {
      const { database, ledger } = await start(t);
      const [happened, early, late] = [newClaim(), newClaim(), newClaim()];
      await send(ledger, happened);
      await send(ledger, early);
      await send(ledger, late, -1_000);
      for (const one of [happened, early, late]) await ledger.markInDoubt(sentTo(one), { why: 'no answer' });
      assert.equal(await ledger.resolveHappened(happened, withPayment('payment-9').created), true);
      assert.equal(await ledger.resolveHappened(happened), false, 'once');
      assert.deepEqual(await Promise.all([early, late].map(ledger.resolveNotHappened)), [false, true]);
      const row = await ledger.read(happened);
      assert.deepEqual([row?.step, row?.payment_id], ['happened', 'payment-9']);
      assert.deepEqual(await claimKinds(ledger, [again(early), again(late)]), [
        'exists: in-doubt',
        'claimed',
      ]);
      assert.equal((await database.query('SELECT * FROM payment')).length, 1);
    });

    describe('a late answer, after an operator has said that the write happened,', () => {
      async function resolved(t: TestContext, paymentId?: string) {
        const { database, ledger } = await start(t);
        const claim = newClaim();
        await send(ledger, claim);
        await ledger.markInDoubt(sentTo(claim), { why: 'no answer' });
        const named = paymentId === undefined ? undefined : withPayment(paymentId).created;
        assert.equal(await ledger.resolveHappened(claim, named), true);
        return { database, ledger, claim };
      }
      const paymentsIn = async (database: Database) =>
        (await database.query('SELECT payment_id, tenant FROM payment')).map((row) => ({ ...row }));

      test('is stored with its payment, which the operator has not named', async (t) => {
        const { database, ledger, claim } = await resolved(t);
        assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'recorded');
        const row = await ledger.read(claim);
        assert.deepEqual([row?.step, row?.payment_id, row?.why], ['answered', 'payment-1', null]);
        assert.deepEqual(await paymentsIn(database), [{ payment_id: 'payment-1', tenant: 'shop' }]);
      });

      test('changes nothing if it is an error, and leaves the operator right', async (t) => {
        const { ledger, claim } = await resolved(t);
        const refusal = { ...answer, status: 400, outcome: 'refused', created: undefined };
        const failure = { ...answer, status: 500, outcome: 'failed', why: 'the bank answered 500' };
        await ledger.recordAnswer(sentTo(claim), refusal);
        assert.equal(await ledger.recordAnswer(sentTo(claim), failure), 'in-doubt');
        const row = await ledger.read(claim);
        assert.deepEqual([row?.step, row?.why], ['happened', null]);
      });

      test('is not shown if it names another payment than the operator', async (t) => {
        const { database, ledger, claim } = await resolved(t, 'payment-9');
        assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'in-doubt');
        assert.equal(await ledger.recordAnswer(sentTo(claim), withPayment('payment-9')), 'recorded');
        assert.equal((await ledger.read(claim))?.step, 'happened');
        assert.deepEqual(await paymentsIn(database), [{ payment_id: 'payment-9', tenant: 'shop' }]);
      });

      test('is not shown if its payment belongs to another tenant', async (t) => {
        const { database, ledger, claim } = await resolved(t);
        const others = newClaim({ tenant: 'market' });
        await send(ledger, others);
        await ledger.recordAnswer(sentTo(others), answer);
        assert.equal(await ledger.recordAnswer(sentTo(claim), answer), 'in-doubt');
        assert.equal((await ledger.read(claim))?.step, 'happened');
        assert.deepEqual(await paymentsIn(database), [{ payment_id: 'payment-1', tenant: 'market' }]);
      });
    });

    test('releases a write that was not sent or not processed, and none that is answered', async (t) => {
      const { database, ledger } = await start(t);
      const [claimed, sending, answered] = [newClaim(), newClaim(), newClaim()];
      await claimKinds(ledger, [claimed]);
      await send(ledger, sending);
      await send(ledger, answered);
      await ledger.recordAnswer(sentTo(answered), answer);
      await Promise.all([claimed, sending, answered].map(ledger.release));
      assert.equal(
        (await database.query('SELECT * FROM ledger')).length,
        2,
        'what was never sent is deleted',
      );
      const repeats = [claimed, sending, answered].map((one) => again(one));
      const outcomes = await Promise.all(repeats.map(ledger.claim));
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.kind === 'claimed' ? outcome.followsReleased : outcome.kind)),
        [false, true, 'exists'],
      );
      await ledger.release(repeats[1] as NewClaim);
      const third = await ledger.claim(again(sending));
      assert.equal(third.kind === 'claimed' && third.followsReleased, true, 'an earlier attempt stays known');
    });

    test('deletes writes after their window, and no write in doubt or unanswered', async (t) => {
      const { ledger } = await start(t);
      const [answered, failed, sending, released] = [newClaim(), newClaim(), newClaim(), newClaim()];
      for (const one of [answered, failed, sending, released]) await send(ledger, one);
      await ledger.recordAnswer(sentTo(answered), answer);
      await ledger.recordAnswer(sentTo(failed), { ...answer, status: 504, why: 'the bank answered 504' });
      await ledger.release(released);
      assert.equal((await ledger.deleteExpired(60_000, 100)).rows, 0);
      assert.equal((await ledger.deleteExpired(-1_000, 1)).rows, 1, 'in batches');
      assert.equal((await ledger.deleteExpired(-1_000, 100)).rows, 1);
      const left = await Promise.all([answered, failed, sending, released].map(ledger.read));
      assert.deepEqual(
        left.map((row) => row?.step),
        [undefined, 'answered', 'sending', undefined],
      );
    });

    test('claims the other writes of a batch if one cannot be stored', async (t) => {
      const { ledger } = await start(t);
      const outcomes = await claimKinds(ledger, [newClaim(), newClaim({ path: nameWithZero }), newClaim()]);
      assert.deepEqual([outcomes[0], outcomes[2]], ['claimed', 'claimed']);
      assert.equal(outcomes[1], name === 'PostgreSQL' ? 'refused' : 'claimed', 'PostgreSQL stores no NUL');
    });

    for (const [what, { paymentId, why }] of Object.entries(notStored))
      test(`puts a write in doubt whose payment id ${what}, and records the others of its batch`, {
        skip: name !== 'PostgreSQL',
      }, async (t) => {
        const { ledger } = await start(t);
        const [claim, other] = [newClaim(), newClaim()];
        for (const one of [claim, other]) await send(ledger, one);
        const outcomes = await Promise.all([
          ledger.recordAnswer(sentTo(claim), withPayment(paymentId)),
          ledger.recordAnswer(sentTo(other), answer),
        ]);
        assert.deepEqual(outcomes, ['in-doubt', 'recorded']);
        assert.match(String((await ledger.read(claim))?.why), why);
      });
  });
