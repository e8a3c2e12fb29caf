/** The changes of statuses on their way to the database. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSeenStatuses } from '../../../src/payments/seen-statuses.ts';
import { DatabaseError } from '../../../src/store/database.ts';
import type { AgedStatus } from '../../../src/store/payment-history.ts';

const shown = (transactionStatus: unknown) => ({
  ...{ status: 200, headers: [], environment: 'sandbox', servedFrom: 'bank' as const },
  body: Buffer.from(JSON.stringify({ transactionStatus })),
});
const read = (paymentId: string) =>
  ({ paymentId, environment: 'sandbox', seenBy: 'status read', requestId: 'request' }) as const;

/** @param failures for each call of the table; `undefined` succeeds */
function start(failures: (DatabaseError | undefined)[] = []) {
  const stored: AgedStatus[] = [];
  let refused: ReadonlyMap<number, DatabaseError> = new Map();
  const seen = createSeenStatuses({
    async insertStatuses(batch) {
      const failure = failures.shift();
      if (failure) throw failure;
      stored.push(...batch);
      return refused;
    },
  });
  return {
    ...seen,
    refuse: (index: number) => {
      refused = new Map([[index, new DatabaseError('refused', 'none-ever')]]);
    },
    stored: () => stored.map(({ paymentId, status }) => `${paymentId} ${status}`),
  };
}

describe('the statuses that answers of the bank show', () => {
  test('are stored when they change', async () => {
    const { noteShown, flush, stored } = start();
    for (const status of ['RCVD', 'RCVD', 'ACSC']) noteShown(read('p1'), shown(status));
    noteShown(read('p2'), shown('RCVD'));
    await flush();
    noteShown(read('p1'), shown('ACSC'));
    await flush();
    assert.deepEqual(stored(), ['p1 RCVD', 'p1 ACSC', 'p2 RCVD']);
  });

  test('have CANC after a cancellation that ends with 204, which has no body', async () => {
    const { noteShown, flush, stored } = start();
    const empty = { ...shown('RCVD'), status: 204, body: Buffer.alloc(0) };
    noteShown({ ...read('p1'), seenBy: 'cancellation' }, empty);
    noteShown({ ...read('p2'), seenBy: 'update' }, empty);
    noteShown({ ...read('p3'), seenBy: 'cancellation' }, { ...shown('ACTC'), status: 202 }); // it needs an authorisation
    await flush();
    assert.deepEqual(stored(), ['p1 CANC', 'p3 ACTC']);
  });

  test('are no texts other than codes', async () => {
    const { noteShown, flush, stored } = start();
    for (const status of ['Anna Müller', 'rcvd', '', 4, undefined]) noteShown(read('p1'), shown(status));
    await flush();
    assert.deepEqual(stored(), []);
  });

  test('are kept while the database is unreachable', async () => {
    const { noteShown, flush, stored } = start([new DatabaseError('down', 'unknown')]);
    noteShown(read('p1'), shown('RCVD'));
    await flush();
    assert.deepEqual(stored(), []);
    noteShown(read('p1'), shown('ACSC'));
    await flush();
    assert.deepEqual(stored(), ['p1 RCVD', 'p1 ACSC']);
  });

  test('are noted again if the database has refused them', async () => {
    const { noteShown, flush, stored, refuse } = start();
    refuse(1);
    for (const id of ['p1', 'p2']) noteShown(read(id), shown('RCVD'));
    await flush();
    for (const id of ['p1', 'p2']) noteShown(read(id), shown('RCVD'));
    await flush();
    assert.deepEqual(stored(), ['p1 RCVD', 'p2 RCVD', 'p2 RCVD']);
  });

  test('do not fill the memory during a long outage: the oldest are forgotten', async () => {
    const { noteShown, flush, stored } = start([new DatabaseError('down', 'none')]);
    for (let index = 0; index <= 20_000; index += 1) noteShown(read(`p${index}`), shown('RCVD'));
    await flush();
    noteShown(read('p0'), shown('RCVD'));
    await flush();
    assert.equal(stored()[0], 'p1000 RCVD');
    assert.equal(stored().at(-1), 'p0 RCVD');
    assert.equal(stored().length, 19_002);
  });
});
