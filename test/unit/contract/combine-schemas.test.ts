import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ContractOptions, prepareCombined } from '../../../src/contract/contract.ts';
import type { Profile } from '../../../src/contract/profile.ts';
import { single } from '../../kit/judged.ts';

type Field = Omit<Profile['fields'][number], 'body'>;

const contractWith = (...fields: readonly Field[]): ContractOptions => ({
  standardVersion: '1.3.11',
  profile: { products: [], fields: fields.map((field) => ({ body: 'singlePayment', ...field })), levels: [] },
});
const standard = contractWith();

async function isAccepted(contracts: readonly ContractOptions[], changes: Readonly<Record<string, unknown>>) {
  const satisfiesAll = await prepareCombined(contracts);
  return satisfiesAll('singlePayment', single(changes));
}

describe('the combined check of several contracts', () => {
  test('accepts a body that satisfies all of them', async () => {
    const contracts = [
      { standardVersion: '1.3.6' },
      standard,
      contractWith({ field: 'own', presence: 'optional' }),
    ];
    assert.equal(await isAccepted(contracts, {}), true);
  });

  test('rejects a body without a field that one of them requires', async () => {
    const contracts = [standard, contractWith({ field: 'endToEndIdentification', presence: 'required' })];
    assert.equal(await isAccepted(contracts, {}), false);
    assert.equal(await isAccepted(contracts, { endToEndIdentification: 'E2E' }), true);
  });

  test('rejects a body with a field that one of them forbids, ignores or does not have', async () => {
    for (const presence of ['forbidden', 'ignored'] as const) {
      const contracts = [standard, contractWith({ field: 'endToEndIdentification', presence })];
      assert.equal(await isAccepted(contracts, { endToEndIdentification: 'E2E' }), false);
    }
    const withOwn = [contractWith({ field: 'own', presence: 'optional' }), standard];
    assert.equal(await isAccepted(withOwn, { own: 'a' }), false);
    const withOlder = [standard, { standardVersion: '1.3.6' }];
    assert.equal(await isAccepted(withOlder, { requestedExecutionDate: '2030-01-01' }), false);
  });

  test('rejects a value that one of them rejects', async () => {
    const contracts = [
      standard,
      contractWith({ field: 'creditorName', maxLength: 5 }, { field: 'purposeCode', oneOf: ['CASH'] }),
    ];
    assert.equal(await isAccepted(contracts, { creditorName: 'Names' }), true);
    assert.equal(await isAccepted(contracts, { creditorName: 'Longer' }), false);
    assert.equal(await isAccepted(contracts, { creditorName: '' }), false);
    assert.equal(await isAccepted(contracts, { creditorName: 'Names', purposeCode: 'CASH' }), true);
    assert.equal(await isAccepted(contracts, { creditorName: 'Names', purposeCode: 'GDDS' }), false);
  });
});
