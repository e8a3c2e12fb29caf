/** The connection to PostgreSQL is cut at a statement of the ledger: its repetition finds out what has become of the row. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { DatabaseError } from '../../src/store/database.ts';
import { createInstanceTable } from '../../src/store/instances.ts';
import {
  createLedgerTable,
  type LedgerAnswer,
  type LedgerTable,
  type SentWrite,
} from '../../src/store/ledger.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { startProxiedPostgres } from '../kit/postgres-proxy.ts';
import { within } from '../kit/within.ts';

const answer: LedgerAnswer = {
  ...{ status: 201, headers: '[]', body: Buffer.from('{}'), outcome: undefined, why: undefined },
  created: { paymentId: 'payment-1', initiatedAs: 'payments/sepa-credit-transfers', isPermanent: false },
};

const newWrite = (): SentWrite => ({
  ...{ tenant: 'shop', operation: 'initiatePayment', payment: '', requestId: randomUUID() },
  ...{ attempt: randomUUID(), instance: 'one', path: '/', environment: 'sandbox' },
  ...{ listenMs: 60_000, markedAtMs: performance.now() },
  ...{ fingerprintKey: undefined, fingerprintRequest: 'r', fingerprintContent: 'c', isFirstFactor: false },
});

const again = (one: SentWrite): SentWrite => ({ ...one, attempt: randomUUID() });

interface Cut {
  /** In the text of the statement. */
  readonly sent: RegExp;
  /** How far the write has got before. */
  readonly prepare: (ledger: LedgerTable, one: SentWrite) => Promise<unknown>;
  readonly execute: (ledger: LedgerTable, one: SentWrite) => Promise<unknown>;
  /** What the repetition returns if the first one was cut before or after the server had it. */
  readonly repeated: Readonly<Record<'before' | 'after', unknown>>;
  /** The step of the row at the end; `undefined` if there is none. */
  readonly step: string | undefined;
}

const claimed = (ledger: LedgerTable, one: SentWrite) => ledger.claim(one);
const marked = async (ledger: LedgerTable, one: SentWrite) => {
  await ledger.claim(one);
  await ledger.mark({ ...one, listenMs: 1_000, identityRevision: 0 });
};

const cuts: Readonly<Record<string, Cut>> = {
  claim: {
    sent: /INSERT INTO ledger/,
    prepare: async () => {},
    execute: async (ledger, one) => (await ledger.claim(one)).kind,
    repeated: { before: 'claimed', after: 'exists' },
    step: 'claimed',
  },
  mark: {
    sent: /SET step = 'sending'/,
    prepare: claimed,
    execute: (ledger, one) => ledger.mark({ ...one, listenMs: 1_000, identityRevision: 0 }),
    repeated: { before: true, after: true },
    step: 'sending',
  },
  'record of the answer': {
    sent: /INSERT INTO payment/,
    prepare: marked,
    execute: (ledger, one) => ledger.recordAnswer(one, answer),
    repeated: { before: 'recorded', after: 'recorded' },
    step: 'answered',
  },
  'record of a doubt': {
    sent: /SET step = 'in-doubt'/,
    prepare: marked,
    execute: (ledger, one) => ledger.markInDoubt(one, { why: 'no answer' }),
    repeated: { before: 'recorded', after: 'in-doubt' },
    step: 'in-doubt',
  },
  release: {
    sent: /DELETE FROM ledger/,
    prepare: claimed,
    execute: (ledger, one) => ledger.release(one),
    repeated: { before: undefined, after: undefined },
    step: undefined,
  },
};

async function start(t: TestContext) {
  const { url, proxy, server } = await startProxiedPostgres(t);
  const [database, direct] = [connectPostgres(url), connectPostgres(server.url)];
  t.after(async () => void (await Promise.all([database.close(), direct.close()])));
  await createInstanceTable(direct, 'one').report();
  return { proxy, ledger: createLedgerTable(database), direct: createLedgerTable(direct) };
}

describe('a connection to PostgreSQL that is cut', { skip: skipWithoutPostgres }, () => {
  for (const when of ['before', 'after'] as const)
    test(`${when} the server has executed a statement: the outcome is unknown, and a repetition finds it out`, async (t) => {
      const { proxy, ledger, direct } = await start(t);
      for (const [name, { sent, prepare, execute, repeated, step }] of Object.entries(cuts)) {
        const one = newWrite();
        await prepare(ledger, one);
        const { cuts: count, end } = proxy.cutAt(when, sent);
        await assert.rejects(within(20_000, 'an error', execute(ledger, one)), (thrown) => {
          assert.ok(thrown instanceof DatabaseError, `${name}: ${thrown}`);
          assert.equal(thrown.effect, 'unknown', name);
          return true;
        });
        assert.ok(count() > 0, name);
        end();
        assert.deepEqual(await execute(ledger, one), repeated[when], name);
        assert.equal((await direct.read(one))?.step, step, name);
        if (step === 'sending' || step === 'answered')
          assert.equal((await direct.claim(again(one))).kind, 'exists');
      }
    });

  test('while it waits for an answer: every statement ends within seconds', async (t) => {
    const { proxy, ledger } = await start(t);
    proxy.freeze();
    await assert.rejects(within(10_000, 'an error', ledger.claim(newWrite())), DatabaseError);
    proxy.resume();
    assert.equal((await ledger.claim(newWrite())).kind, 'claimed');
  });
});
