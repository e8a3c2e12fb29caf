/** The database executes a statement of a request, and does not answer: the TPP gets an answer at the deadline, and nothing is paid twice. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase, type StatementPattern } from '../kit/faulty-database.ts';
import { shortDeadlines, startBank, startGateway } from '../kit/gateway.ts';
import { initiationCounts } from '../kit/payment-fleet.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

/** Much longer than the deadline. The statement does not return before the answer, so that without a deadline there is none. */
const maxAnswerMs = 20_000;

async function start(t: TestContext) {
  const bank = await startBank(t);
  const database = createFaultyDatabase(await newGatewayDatabase(t));
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl: bank.baseUrl },
    other: { baseUrl: `${bank.baseUrl}/other` },
  };
  const stores = { database, heartbeatDatabase: database };
  const gateway = await startGateway(t, { environments, ...shortDeadlines }, stores);
  return {
    bank,
    pay: async (requestId: string) => outcomeOf(await call(gateway.url, { ...initiation, requestId })),
    read: async (paymentId: string) =>
      outcomeOf(await call(gateway.url, { method: 'GET', path: `${transfersPath}/${paymentId}` })),
    /** The outcome of a request during which a statement does not return. */
    async whileBlocked(statement: StatementPattern, send: () => Promise<string>): Promise<string> {
      const unblock = database.block(statement);
      try {
        return await within(maxAnswerMs, 'an answer', send());
      } finally {
        unblock();
      }
    },
  };
}

const isTemporary = /STATE_UNAVAILABLE|IN_FLIGHT|OUTCOME_UNKNOWN/;

describe('a payment whose statement does not return', { concurrency: 8 }, () => {
  for (const [statement, outcome, repeated] of [
    ['claim', '503 STATE_UNAVAILABLE', '201'],
    ['mark', '503 STATE_UNAVAILABLE', '201'],
    ['recordAnswer', '504 OUTCOME_UNKNOWN', '201 replayed'],
  ] as const)
    test(`gets ${outcome} at its deadline if it is the ${statement}; a repeat gets ${repeated}`, async (t) => {
      const { bank, pay, whileBlocked } = await start(t);
      const requestId = randomUUID();
      assert.equal(await whileBlocked(statement, () => pay(requestId)), outcome);
      let last = '';
      await until(
        maxAnswerMs,
        () => `the outcome is final: ${last}`,
        async () => {
          last = await pay(requestId);
          return !isTemporary.test(last);
        },
      );
      assert.equal(last, repeated);
      assert.equal(initiationCounts(bank).get(requestId), 1);
    });

  test('gets OUTCOME_UNKNOWN at its deadline if the bank does not answer, and the doubt is not stored', async (t) => {
    const { bank, pay, whileBlocked } = await start(t);
    bank.injectFault({ name: 'never-answer' });
    const requestId = randomUUID();
    assert.equal(await whileBlocked('markInDoubt', () => pay(requestId)), '504 OUTCOME_UNKNOWN');
    await until(
      maxAnswerMs,
      'it is in doubt',
      async () => (await pay(requestId)) === '409 DUPLICATE_IN_DOUBT',
    );
  });

  test('is answered at its deadline if the bank cannot be reached, and the release is not stored', async (t) => {
    const { bank, pay, whileBlocked } = await start(t);
    await bank.stop();
    const outcome = await whileBlocked('release', () => pay(randomUUID()));
    assert.equal(outcome, '502 UPSTREAM_UNREACHED');
  });
});

test('a read of a payment whose look-up does not return gets STATE_UNAVAILABLE at its deadline', async (t) => {
  const { read, whileBlocked } = await start(t);
  const outcome = await whileBlocked(/JOIN payment/, () => read('a-payment'));
  assert.equal(outcome, '503 STATE_UNAVAILABLE');
});
