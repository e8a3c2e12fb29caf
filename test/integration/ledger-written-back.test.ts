/**
 * After a failover, an instance writes back a mark or a doubt that the database has lost, while it stores the outcome of the same attempt:
 * the row appears between two statements (ADR 122).
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLedgerTable, type LedgerTable, type SentWrite } from '../../src/store/ledger.ts';
import { nameOfStatement } from '../kit/database-statements.ts';
import { databaseKinds } from '../kit/databases.ts';
import { answer, newClaim, send, sentTo } from '../kit/ledger-claims.ts';

type Write = (ledger: LedgerTable, sent: SentWrite) => Promise<unknown>;

const initiated: Write = (ledger, sent) => ledger.recordAnswer(sent, answer);
const cancelled: Write = (ledger, sent) => ledger.recordAnswer(sent, { ...answer, created: undefined });
const doubted: Write = (ledger, sent) => ledger.markInDoubt(sent, { why: 'no answer' });
const mark: Write = (ledger, sent) => ledger.restoreMark(sent);

const initiation = newClaim();
const cancellation = newClaim({ operation: 'cancelPayment', payment: 'payment-1' });

/** The row is written back after the first statement of this name. */
const cases = [
  { claim: initiation, record: initiated, after: 'recordAnswer', writeBack: mark, step: 'answered' },
  { claim: initiation, record: initiated, after: 'read', writeBack: mark, step: 'answered' },
  { claim: initiation, record: initiated, after: 'read', writeBack: doubted, step: 'answered' },
  { claim: cancellation, record: cancelled, after: 'recordAnswer', writeBack: mark, step: 'answered' },
  { claim: cancellation, record: cancelled, after: 'recordAnswer', writeBack: doubted, step: 'answered' },
  { claim: initiation, record: doubted, after: 'markInDoubt', writeBack: mark, step: 'in-doubt' },
];

for (const [name, { skip, open }] of Object.entries(databaseKinds))
  describe(`an outcome in ${name}, whose row is written back at the same time`, { skip }, () => {
    for (const { claim, record, after, writeBack, step } of cases)
      test(`is stored: ${claim.operation}, ${record.name}; ${writeBack.name} after ${after}`, async (t) => {
        const [database] = await open(t);
        const ledger = createLedgerTable(database);
        const sent = sentTo(claim);
        await send(ledger, sent);
        await database.query('DELETE FROM ledger');
        let isWrittenBack = false;
        const interrupted = createLedgerTable({
          ...database,
          async batch(statement, rows) {
            const result = await database.batch(statement, rows);
            if (isWrittenBack || nameOfStatement(statement) !== after) return result;
            isWrittenBack = true;
            await writeBack(ledger, sent);
            return result;
          },
        });
        assert.equal(await record(interrupted, sent), 'recorded');
        assert.ok(isWrittenBack);
        assert.equal((await ledger.read(sent))?.step, step);
      });
  });
