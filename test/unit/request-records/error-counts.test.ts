import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createErrorCounts } from '../../../src/request-records/error-counts.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

const bankError = (code: string, client = 'shop') => {
  const { request, ...record } = requestRecord({ status: 400 }, [{ what: 'bank-error', code }]);
  return { ...record, request: request && { ...request, client } };
};

describe('the errors of a minute', () => {
  test('have the codes of the bank, of which a bank that invents codes has 18, and `other`', () => {
    const errors = createErrorCounts('gateway-1');
    for (let index = 0; index < 300; index += 1) errors.add(bankError(`CODE_${index}`));
    errors.add(bankError('CODE_1'));
    errors.add(requestRecord({ status: 500 })); // without a code
    const counts = errors.takeChanged().map(({ bank_error: code, requests }) => [code, requests]);
    assert.deepEqual(counts, [
      ...Array.from({ length: 18 }, (_, index) => [`CODE_${index}`, index === 1 ? 2 : 1]),
      ['other', 282],
      ['', 1],
    ]);
  });

  test('have the errors of the gateway, although a bank has answered many clients with errors', () => {
    const errors = createErrorCounts('gateway-1');
    for (let index = 0; index < 500; index += 1) errors.add(bankError('FORMAT_ERROR', `client-${index}`));
    errors.add(failedRecord('CIRCUIT_OPEN', 503));
    const rows = errors.takeChanged();
    assert.equal(rows.length, 101);
    assert.equal(rows.at(-1)?.code, 'CIRCUIT_OPEN');
  });
});
