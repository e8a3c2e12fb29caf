/** The budget of the ledger: two statements in sequence before the bank is called (claim and mark), and one before the TPP gets the response. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { newWrite, outcomeOf, withUpdates, writeNames } from '../kit/writes.ts';

/** Those of the heartbeat and of other stages are not counted. */
const ofTheLedger = ['claim', 'read', 'mark', 'recordAnswer', 'markInDoubt', 'release'];

async function startCounting(t: TestContext, dialect: 'sqlite' | 'postgres') {
  const bank = await startBank(t);
  const database = createFaultyDatabase(await newGatewayDatabase(t, dialect));
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...withUpdates };
  const gateway = await startGateway(t, sections, { database, heartbeatDatabase: database });
  return {
    bank,
    gateway,
    /** Sends a request. @returns its outcome and the statements of the ledger meanwhile */
    async measure(write: Awaited<ReturnType<typeof newWrite>>) {
      const before = database.statements.length;
      const outcome = outcomeOf(await call(gateway.url, write.call));
      const statements = database.statements.slice(before).filter((name) => ofTheLedger.includes(name));
      return { outcome, statements };
    },
  };
}

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`the ledger on ${dialect}`, { skip: dialect === 'postgres' && skipWithoutPostgres }, () => {
    for (const name of writeNames)
      test(`needs a claim and a mark before the bank is called, and one record before the TPP gets the response: ${name}`, async (t) => {
        const { bank, measure } = await startCounting(t, dialect);
        const { outcome, statements } = await measure(await newWrite(bank, name));
        assert.match(outcome, /^20[0124]$/);
        assert.deepEqual(statements, ['claim', 'mark', 'recordAnswer']);
      });

    test('needs a claim and a read for a replay', async (t) => {
      const { bank, measure } = await startCounting(t, dialect);
      const write = await newWrite(bank, 'initiation');
      await measure(write);
      assert.deepEqual(await measure(write), { outcome: '201 replayed', statements: ['claim', 'read'] });
    });
  });
