/** Two attempts of one write, after the database has lost the row of the first one, or an operator was wrong about it. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { Database } from '../../src/store/database.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { nameOfStatement } from '../kit/database-statements.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import { shortDeadlines } from '../kit/gateway.ts';
import { again, answer, claimKinds, mark, newClaim, send, sentTo } from '../kit/ledger-claims.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { client, pay, shareDatabase, verdictOf } from '../kit/tenants.ts';
import { until } from '../kit/within.ts';

const json = [['Content-Type', 'application/json']] as const;
const created = JSON.stringify({
  transactionStatus: 'RCVD',
  paymentId: 'p1',
  _links: { self: { href: '/v1/payments/sepa-credit-transfers/p1' } },
});

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`two attempts, ${dialect}`, { skip: dialect === 'postgres' && skipWithoutPostgres }, () => {
    /** The database has lost the row of the first attempt, which was sent. */
    async function startLost(t: TestContext) {
      const database = await newGatewayDatabase(t, dialect);
      const ledger = createLedgerTable(database);
      const first = newClaim();
      await send(ledger, first);
      await database.query('DELETE FROM ledger');
      return { database, ledger, first };
    }

    async function startTwice(t: TestContext) {
      const { database, ledger, first } = await startLost(t);
      const second = again(first);
      await send(ledger, second);
      return { database, ledger, first, second };
    }

    /** The bank has executed the first attempt, and the second one is being sent. */
    async function startReported(t: TestContext) {
      const { database, ledger, first, second } = await startTwice(t);
      assert.equal(await ledger.recordAnswer(sentTo(first), answer), 'two-attempts');
      return { database, ledger, second };
    }

    test('the second one is in doubt if the bank refuses it, and no third one is sent', async (t) => {
      const { ledger, second } = await startReported(t);
      await ledger.release(second);
      assert.deepEqual(await claimKinds(ledger, [again(second)]), ['exists: in-doubt']);
      await ledger.release(second);
      const [listed] = await ledger.inDoubt(10);
      assert.equal(listed?.attempt, second.attempt);
      assert.match(String(listed?.why), /another attempt/);
    });

    test('the second one is not sent on another connection', async (t) => {
      const { ledger, second } = await startReported(t);
      assert.equal(await ledger.mark(mark(second)), false);
    });

    test('an operator can resolve it only when it has ended, and names no payment before', async (t) => {
      const { database, ledger, second } = await startReported(t);
      const named = { ...answer.created, paymentId: 'payment-2' };
      assert.equal(await ledger.resolveHappened(second, named), false);
      assert.deepEqual(await database.query('SELECT payment_id FROM payment'), []);
      await ledger.release(second);
      assert.equal(await ledger.resolveHappened(second, named), true);
      assert.deepEqual(await ledger.countsInDoubt(), []);
    });

    test('an operator can resolve it again, if the first one is reported after that', async (t) => {
      const { ledger, first, second } = await startTwice(t);
      await ledger.markInDoubt(sentTo(second), { why: 'no answer' });
      assert.equal(await ledger.resolveHappened(second), true);
      assert.equal(await ledger.recordAnswer(sentTo(first), answer), 'two-attempts');
      const [doubt] = await ledger.countsInDoubt();
      assert.deepEqual([doubt?.writes, doubt?.twice].map(Number), [1, 1]);
      assert.equal(await ledger.resolveHappened(second), true);
      assert.deepEqual(await ledger.countsInDoubt(), []);
    });

    test('a row that is taken back has the fingerprints of the attempt that was sent', async (t) => {
      const { ledger, first } = await startLost(t);
      const other = again(first, {
        fingerprintContent: 'other',
        fingerprintRequest: 'other',
        path: '/other',
      });
      assert.deepEqual(await claimKinds(ledger, [other]), ['claimed']);
      assert.equal(await ledger.recordAnswer(sentTo(first), answer), 'recorded');
      const row = await ledger.read(first);
      assert.deepEqual(
        [row?.step, row?.fingerprint_content, row?.fingerprint_request, row?.path],
        ['answered', 'content', 'request', first.path],
      );
    });

    test('a doubt that is stored late, after the release, is no report of two attempts', async (t) => {
      const late = Promise.withResolvers<void>();
      const bank = await startStubBank(t, async () => {
        if (bank.requests.length > 1) return { status: 201, headers: json, body: created };
        await late.promise;
        return {
          status: 429,
          headers: json,
          body: '{"tppMessages":[{"category":"ERROR","code":"ACCESS_EXCEEDED"}]}',
        };
      });
      const { startAnother } = await shareDatabase(t, dialect);
      const sections = {
        environments: { sandbox: { baseUrl: bank.baseUrl } },
        clients: [client('shop')],
        ...shortDeadlines,
      };
      const [reached, mayContinue] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let database: Database | undefined;
      const gateway = await startAnother(sections, (given) => {
        database = given;
        return {
          ...given,
          async batch(statement, rows) {
            if (nameOfStatement(statement) === 'markInDoubt') {
              reached.resolve();
              await mayContinue.promise;
            }
            return given.batch(statement, rows);
          },
        };
      });
      const requestId = randomUUID();
      const first = pay(gateway, 'shop', requestId);
      await reached.promise;
      assert.equal(verdictOf(await first), 'OUTCOME_UNKNOWN');
      late.resolve();
      assert.equal(verdictOf(await pay(gateway, 'shop', requestId)), 'DUPLICATE_IN_FLIGHT');
      mayContinue.resolve();
      let last = '';
      await until(
        10_000,
        () => `the late answer has released the first attempt, and a repeat is paid; the last one: ${last}`,
        async () => {
          const reply = await pay(gateway, 'shop', requestId);
          last = reply.text;
          return reply.status === 201;
        },
      );
      const rows = await database?.query('SELECT step, why, other_attempt FROM ledger');
      assert.deepEqual(
        rows?.map((row) => ({ ...row })),
        [{ step: 'answered', why: null, other_attempt: null }],
      );
      assert.deepEqual(
        gateway.logLines.filter((line) => line.includes('two attempts')),
        [],
      );
      assert.equal(bank.requests.length, 2);
    });

    test('a repeat is paid, if it claims the row before the release is known', async (t) => {
      const tooBusy = { status: 429, headers: json, body: '{}' };
      const paid = { status: 201, headers: json, body: created };
      const bank = await startStubBank(t, () => (bank.requests.length > 1 ? paid : tooBusy));
      const { startAnother } = await shareDatabase(t, dialect);
      const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, clients: [client('shop')] };
      const unblocks: (() => void)[] = []; // of each connection
      const gateway = await startAnother(sections, (given) => {
        const database = createFaultyDatabase(given);
        unblocks.push(database.block('release'));
        return database;
      });
      const requestId = randomUUID();
      const first = pay(gateway, 'shop', requestId);
      await until(10_000, 'the bank has the first attempt', () => bank.requests.length > 0);
      await until(10_000, 'a repeat is paid', async () => {
        const repeat = await pay(gateway, 'shop', requestId);
        assert.notEqual(verdictOf(repeat), 'DUPLICATE_IN_DOUBT');
        return repeat.status === 201;
      });
      for (const unblock of unblocks) unblock();
      assert.equal((await first).status, 429);
      assert.equal(bank.requests.length, 2);
    });
  });
