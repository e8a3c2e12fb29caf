/** The examples of the standard, with the faults with which they were published. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JudgedRequest } from '../../../src/contract/judge-request.ts';
import type { JudgedResponse } from '../../../src/contract/judge-response.ts';
import { createMatcher } from '../../../src/pis/operations.ts';
import { type Example, type ExampleAnswer, examples } from '../../kit/examples.ts';
import {
  answerVerdictOf,
  bothContracts,
  harmfulOf,
  receivedAtMs,
  request,
  verdictOf,
} from '../../kit/judged.ts';

const match = createMatcher({
  segment: '',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

function operationOf({ method, path }: Example) {
  const matched = match(method, `/v1${path}`);
  if (matched.kind !== 'operation') return assert.fail(path);
  const { name, paymentService, paymentProduct } = matched.operation;
  return { operation: name, paymentService, paymentProduct };
}

const requestOf = (example: Example): JudgedRequest => ({
  ...operationOf(example),
  headers: example.headers,
  body: Buffer.from(example.body ?? ''),
  receivedAtMs,
});

const responseOf = (example: Example, { status, headers, body }: ExampleAnswer): JudgedResponse => ({
  ...operationOf(example),
  status,
  headers,
  body: Buffer.from(body ?? ''),
});

/**
 * After the example of a bulk in psd2-api 1.3.11 (The Berlin Group, CC BY 4.0), with its text for a boolean. Its misspelt key `instructedAmount"` is corrected here: with
 * it, the payment has no amount.
 */
const bulk = {
  batchBookingPreferred: 'true',
  debtorAccount: { iban: 'DE40100100103307118608' },
  requestedExecutionDate: '2018-08-01',
  payments: [
    {
      instructedAmount: { currency: 'EUR', amount: '123.50' },
      creditorName: 'Merchant123',
      creditorAccount: { iban: 'DE02100100109307118603' },
      remittanceInformationUnstructured: 'Ref Number Merchant 1',
    },
    {
      instructedAmount: { currency: 'EUR', amount: '34.10' },
      creditorName: 'Merchant456',
      creditorAccount: { iban: 'FR7612345987650123456789014' },
      remittanceInformationUnstructured: 'Ref Number Merchant 2',
    },
  ],
};

/** One for each step of an authorisation. */
const authorisations = [
  { psuData: { password: 'start12' } },
  { authenticationMethodId: 'myAuthenticationID' },
  { scaAuthenticationData: '123456' },
];

const answers = examples.flatMap((example) => example.answers.map((answer) => ({ example, answer })));

describe('the contract and the examples of the standard', () => {
  test('refuses no request, in either version', () => {
    assert.ok(examples.length >= 12);
    for (const contract of bothContracts)
      for (const example of examples)
        assert.deepEqual(harmfulOf(contract, requestOf(example)), [], example.name);
  });

  test('reports the known faults of the requests', () => {
    const found = new Set(
      bothContracts.flatMap((contract) =>
        examples.flatMap((example) => verdictOf(contract, requestOf(example))),
      ),
    );
    assert.deepEqual([...found].toSorted(), [
      'usual iban body/creditorAccount/iban may-be-refused', // wrong check digits
      'usual iban parts/xml_sct/IBAN may-be-refused',
      'usual iban xml/IBAN may-be-refused',
      'usual leading-zero body/dayOfExecution may-be-refused',
      'usual required parts/xml_sct/PmtInf/DbtrAgt may-be-refused', // optional for the EPC, required by ISO 20022
      'usual required xml/PmtInf/DbtrAgt may-be-refused',
      'usual white-space parts/xml_sct/IBAN may-be-refused',
      'usual white-space xml/IBAN may-be-refused',
    ]);
  });

  test('refuses neither the bulk nor the bodies of authorisations', () => {
    for (const contract of bothContracts) {
      assert.deepEqual(verdictOf(contract, request.bulk(bulk)), [
        'usual text-for-boolean body/batchBookingPreferred may-be-refused',
      ]);
      for (const body of authorisations)
        assert.deepEqual(verdictOf(contract, request.authorisation(body)), []);
    }
  });

  test('refuses the bulk with its misspelt key, as the bank does', () => {
    const body = JSON.stringify(bulk).replace('"instructedAmount":', '"instructedAmount\\"":');
    for (const contract of bothContracts)
      assert.deepEqual(harmfulOf(contract, request.bulk(undefined, { body })), [
        'required body/payments/#/instructedAmount',
      ]);
  });

  test('finds nothing harmful in an answer of its own version', () => {
    for (const contract of bothContracts)
      for (const { example, answer } of answers) {
        if (answer.standard !== 'both' && answer.standard !== contract.version) continue;
        const harmful = answerVerdictOf(contract, responseOf(example, answer)).filter(
          (verdict) => !verdict.startsWith('usual'),
        );
        assert.deepEqual(harmful, [], `${contract.version}: ${example.name}, ${answer.name}`);
      }
  });
});
