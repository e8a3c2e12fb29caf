/** The examples of the standard, with the faults with which they were published. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JudgedRequest } from '../../../src/contract/judge-request.ts';
import type { JudgedResponse } from '../../../src/contract/judge-response.ts';
import { createMatcher } from '../../../src/pis/operations.ts';
import { type Example, type ExampleAnswer, examples } from '../../kit/examples.ts';
import { answerVerdictOf, bothContracts, harmfulOf, receivedAtMs, verdictOf } from '../../kit/judged.ts';

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
      'usual white-space parts/xml_sct/IBAN may-be-refused',
      'usual white-space xml/IBAN may-be-refused',
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
