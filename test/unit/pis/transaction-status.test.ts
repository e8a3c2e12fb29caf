import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { endsAuthorisation, finalityOf, transactionStatuses } from '../../../src/pis/transaction-status.ts';

describe('finalityOf a transaction status', () => {
  const finalCodes = {
    payments: ['ACCC', 'RJCT', 'CANC'],
    'periodic-payments': ['RJCT', 'CANC'],
    'bulk-payments': ['ACCC', 'RJCT', 'CANC'],
  };
  for (const [service, final] of Object.entries(finalCodes)) {
    test(`of ${service} is final for ${final.join(', ')}, settled for ACSC, and pending for all others`, () => {
      assert.equal(transactionStatuses.length, 14);
      for (const code of transactionStatuses) {
        const expected = final.includes(code) ? 'final' : code === 'ACSC' ? 'settled' : 'pending';
        assert.equal(finalityOf(service, code), expected, code);
      }
    });
  }

  test('is pending for unknown codes and unknown payment services', () => {
    for (const code of ['ACCT', '', 'rjct', 'constructor', '__proto__']) {
      assert.equal(finalityOf('payments', code), 'pending', code);
    }
    for (const service of ['card-payments', 'toString', '']) {
      for (const code of transactionStatuses) assert.equal(finalityOf(service, code), 'pending', service);
    }
  });
});

test('an authorisation ends if it is finalised, failed or exempted', () => {
  for (const status of ['finalised', 'failed', 'exempted']) assert.ok(endsAuthorisation(status), status);
  for (const status of ['received', 'started', 'unconfirmed', ''])
    assert.ok(!endsAuthorisation(status), status);
});
