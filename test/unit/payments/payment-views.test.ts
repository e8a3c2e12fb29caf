/** Payments for operators: pages of a filtered list, outcomes and histories. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createPaymentViews } from '../../../src/payments/payment-views.ts';
import { createAuditTable } from '../../../src/store/audit.ts';
import { createLedgerTable } from '../../../src/store/ledger.ts';
import { createPaymentHistoryTable, type ListPosition } from '../../../src/store/payment-history.ts';
import { createWebhookMessageTable } from '../../../src/store/webhook-messages.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { newClaim, send, sentTo } from '../../kit/ledger-claims.ts';
import { insertPayments, insertRecord } from '../../kit/payment-rows.ts';

async function start(
  t: TestContext,
  { recordsKeptForMs = 3_600_000, onQuery = (): unknown => undefined } = {},
) {
  const database = await newGatewayDatabase(t);
  const table = createPaymentHistoryTable({
    ...database,
    query(...input) {
      onQuery();
      return database.query(...input);
    },
  });
  const audit = createAuditTable(database);
  const views = createPaymentViews({
    table,
    messages: createWebhookMessageTable(database),
    audit: {
      async ofPayment(paymentId, count) {
        const records = await audit.ofPayment(paymentId, count);
        return records.map((record) => ({ ...record, details: JSON.parse(record.details) }));
      },
    },
    names: {
      withNames: (fields) => ({ ...fields, environment: `new ${fields.environment}` }),
      tenantIdOf: (name) => name,
      environmentIdOf: (name) => name.replace(/^new /, ''),
    },
    recordsKeptForMs: () => recordsKeptForMs,
  });
  const see = (paymentId: string, status: string) =>
    table.insertStatuses([
      { paymentId, environment: 'sandbox', status, ageMs: 0, seenBy: 'poll', requestId: undefined },
    ]);
  return { database, audit, views, see };
}

describe('the list of payments', () => {
  test('says what has become of each', async (t) => {
    const { database, views, see } = await start(t);
    const outcomes = {
      ACCC: 'executed',
      ACSC: 'executed',
      ACSP: 'pending',
      XXXX: 'pending',
      RJCT: 'rejected',
      CANC: 'cancelled',
    };
    for (const status of Object.keys(outcomes)) {
      await insertPayments(database, { paymentId: status, ageMs: 0 });
      await see(status, status);
    }
    await insertPayments(database, { paymentId: 'none', ageMs: 0 });
    await insertPayments(database, { paymentId: 'order', ageMs: 0, product: 'periodic-payments/sepa' });
    await see('order', 'ACSC');
    const { payments, next } = await views.list({});
    assert.equal(next, undefined);
    assert.deepEqual(Object.fromEntries(payments.map(({ paymentId, outcome }) => [paymentId, outcome])), {
      ...outcomes,
      none: 'unknown',
      order: 'executed',
    });
    const listed = async (filter: Parameters<typeof views.list>[0]) =>
      (await views.list(filter)).payments.map(({ paymentId }) => paymentId).toSorted();
    assert.deepEqual(await listed({ outcome: 'executed' }), ['ACCC', 'ACSC', 'order']);
    assert.deepEqual(await listed({ product: 'sepa' }), ['order']);
    assert.deepEqual(await listed({ product: 'periodic-payments/sepa', status: 'ACSC' }), ['order']);
    assert.deepEqual(await listed({ environment: 'new sandbox', status: 'RJCT' }), ['RJCT']);
    assert.deepEqual(await listed({ environment: 'production' }), []);
  });

  test('continues after 200 payments, also with a filter that few match', async (t) => {
    const { database, views, see } = await start(t);
    await insertPayments(database, { paymentId: 'p', ageMs: 60_000, count: 12_500 });
    for (const id of ['p-1', 'p-2', 'p-12499']) await see(id, 'RJCT');
    const plain = await views.list({});
    assert.equal(plain.payments.length, 200);
    assert.equal((await views.list({ after: plain.next })).payments[0]?.paymentId, 'p-12300');

    const pages: (readonly string[])[] = [];
    let after: ListPosition | undefined;
    do {
      const { payments, next } = await views.list({ outcome: 'rejected', after });
      pages.push(payments.map(({ paymentId }) => paymentId));
      after = next;
    } while (after);
    assert.deepEqual(pages, [['p-12499'], ['p-2', 'p-1']]);
  });

  test('lets requests be served between the statements of a filter', async (t) => {
    let turns = 0;
    let isEnded = false;
    const countTurns = () => {
      turns += 1;
      if (!isEnded) setImmediate(countTurns);
    };
    const turnsOfStatements: number[] = [];
    const { database, views } = await start(t, { onQuery: () => turnsOfStatements.push(turns) });
    await insertPayments(database, { paymentId: 'p', ageMs: 60_000, count: 5_000 });
    countTurns();
    await views.list({ outcome: 'rejected' });
    isEnded = true;
    assert.ok(turnsOfStatements.length > 5);
    assert.equal(new Set(turnsOfStatements).size, turnsOfStatements.length - 1); // the first one counts initiations
  });

  test('fills a page with a filter that many match, and passes over none', async (t) => {
    const { database, views } = await start(t);
    await insertPayments(database, { paymentId: 'p', ageMs: 60_000, count: 450 });
    const seen: string[] = [];
    let after: ListPosition | undefined;
    const sizes: number[] = [];
    do {
      const { payments, next } = await views.list({ outcome: 'unknown', after });
      sizes.push(payments.length);
      seen.push(...payments.map(({ paymentId }) => paymentId));
      after = next;
    } while (after);
    assert.deepEqual(sizes, [200, 200, 50]);
    assert.equal(new Set(seen).size, 450);
  });
});

describe('the history of a payment', () => {
  test('has its requests, statuses and what operators did, in the order of time', async (t) => {
    const { database, audit, views, see } = await start(t);
    await insertPayments(database, { paymentId: 'p1', ageMs: 60_000 });
    const rows = [
      { operation: 'initiatePayment', environment: 'new sandbox' },
      { operation: 'startAuthorisation' },
      { operation: 'cancelPayment', environment: 'production' }, // of another payment with this id
      { operation: 'getPayment', outcome: 'failed', status: 502 },
    ];
    for (const [number, row] of rows.entries())
      await insertRecord(database, { number, receivedAt: Date.now() - 50_000 + number, ...row });
    await see('p1', 'RCVD');
    const events = [
      [
        'resolve in-doubt request',
        { environment: 'new sandbox', reason: 'said the bank', operation: 'cancelPayment' },
      ],
      ['purge status cache', { reason: 'ticket 1' }],
      ['purge status cache', { environment: 'production', reason: 'another' }],
    ] as const;
    for (const [index, [action, details]] of events.entries())
      await audit.insert({
        ...{ number: index + 1, at: new Date(Date.now() + 1_000 + index).toISOString(), who: 'olga', action },
        ...{
          outcome: 'done',
          details: JSON.stringify({ paymentId: 'p1', ...details }),
          previous: '',
          hash: '',
        },
      });
    const found = await views.find('new sandbox', 'p1');
    assert.deepEqual(
      found?.history.map(({ what, operation, status, who, text }) => [what, operation, status, who, text]),
      [
        ['initiation', 'initiatePayment', '201', 'checkout', null],
        ['authorisation', 'startAuthorisation', '201', 'checkout', null],
        ['read', 'getPayment', '502', 'checkout', null],
        ['status', null, 'RCVD', null, 'seen by: poll'],
        ['resolution', 'cancelPayment', null, 'olga', 'said the bank'],
        ['operator', null, null, 'olga', 'purge status cache: ticket 1'],
      ],
    );
    assert.equal(found?.payment.environment, 'new sandbox');
    assert.equal(found?.complete, true);
    assert.equal(await views.find('production', 'p1'), undefined);
  });

  test('has its writes that are in doubt or have no answer yet', async (t) => {
    const { database, views } = await start(t);
    await insertPayments(database, { paymentId: 'p1', ageMs: 60_000 });
    const ledger = createLedgerTable(database);
    const writes = ['cancelPayment', 'updatePayment'].map((operation) =>
      newClaim({ operation, payment: 'p1' }),
    );
    for (const write of writes) await send(ledger, write);
    const [cancellation] = writes;
    if (cancellation) await ledger.markInDoubt(sentTo(cancellation), { why: 'no answer' });
    const found = await views.find('sandbox', 'p1');
    const open = found?.history.filter(({ what }) => what === 'in-doubt' || what === 'running') ?? [];
    assert.deepEqual(
      open.map(({ what, operation, outcome, text }) => [what, operation, outcome, text]).toSorted(),
      [
        ['in-doubt', 'cancelPayment', null, 'no answer'],
        ['running', 'updatePayment', null, null],
      ],
    );
  });

  test('says when requests are missing', async (t) => {
    const { database, views, see } = await start(t, { recordsKeptForMs: 10_000 });
    await insertPayments(database, { paymentId: 'old', ageMs: 20_000 });
    await insertPayments(database, { paymentId: 'p1', ageMs: 0 });
    assert.equal((await views.find('sandbox', 'old'))?.complete, false);
    assert.equal((await views.find('sandbox', 'p1'))?.complete, true);
    for (let number = 0; number < 200; number += 1)
      await insertRecord(database, { number, operation: 'startAuthorisation' });
    assert.equal((await views.find('sandbox', 'p1'))?.complete, true);
    await insertRecord(database, { number: 200, operation: 'startAuthorisation' });
    const found = await views.find('sandbox', 'p1');
    assert.equal(found?.complete, false);
    assert.equal(found?.history.filter(({ what }) => what === 'authorisation').length, 200);

    await insertPayments(database, { paymentId: 'p2', ageMs: 0 });
    for (let change = 0; change < 201; change += 1) await see('p2', change % 2 === 0 ? 'RCVD' : 'ACTC');
    assert.equal((await views.find('sandbox', 'p2'))?.complete, false);
  });
});
