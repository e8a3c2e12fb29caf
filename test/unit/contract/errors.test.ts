/** The errors of banks: harmful if a client cannot read what the error is, and otherwise what every bank does. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JudgedResponse } from '../../../src/contract/judge-response.ts';
import { answer, answerVerdictOf, bothContracts } from '../../kit/judged.ts';

const described = [400, 401, 403, 404, 405, 409] as const;
const others = [406, 408, 413, 415, 429, 431, 500, 501, 502, 503, 504] as const;

const message = { category: 'ERROR', code: 'FORMAT_ERROR' };
const problem = { type: 'https://bank.example/errors/1', code: 'FORMAT_ERROR' };
const asProblem = { headers: { 'Content-Type': 'application/problem+json' } };
const asHtml = { headers: { 'Content-Type': 'text/html; charset=utf-8' } };
const page = '<html><h1>Forbidden</h1></html>';

/** The deviations from both versions, which agree on errors; without that of the status itself. */
function verdictsOf(judged: JudgedResponse): readonly string[] {
  const [verdict = [], other] = bothContracts.map((contract) =>
    answerVerdictOf(contract, judged).filter((deviation) => !deviation.includes('status status/')),
  );
  assert.deepEqual(verdict, other);
  return verdict;
}

/** Bodies of which a client cannot read the code, and why. */
const unreadable: readonly (readonly [name: string, body: object | string, expected: string])[] = [
  ['no message', { tppMessages: [] }, 'min-items error/tppMessages'],
  ['a message instead of a list', { tppMessages: message }, 'type error/tppMessages'],
  ['a text instead of a message', { tppMessages: ['FORMAT_ERROR'] }, 'type error/tppMessages/#'],
  ['no code', { tppMessages: [{ category: 'ERROR' }] }, 'required error/tppMessages/#/code'],
  ['a number as the code', { tppMessages: [{ ...message, code: 400 }] }, 'type error/tppMessages/#/code'],
  ['an empty code', { tppMessages: [{ ...message, code: ' ' }] }, 'pattern error/tppMessages/#/code'],
  ['no category', { tppMessages: [{ code: 'FORMAT_ERROR' }] }, 'required error/tppMessages/#/category'],
  [
    'an unknown category',
    { tppMessages: [{ ...message, category: 'FATAL' }] },
    'enum error/tppMessages/#/category',
  ],
  ['a form of its own', { httpCode: '400', httpMessage: 'Bad Request' }, 'required error/tppMessages'],
  ['a list', '[]', 'type error'],
  ['broken JSON', '{"tppMessages":[', 'json error'],
];

describe('an error for which the files define a body', () => {
  for (const status of described)
    test(`is fine in both formats: ${status}`, () => {
      const more = { path: 'creditorName', text: 'x'.repeat(500) };
      assert.deepEqual(verdictsOf(answer('getPayment', status, { tppMessages: [message] })), []);
      assert.deepEqual(
        verdictsOf(
          answer('getPayment', status, {
            tppMessages: [
              { ...message, ...more },
              { category: 'WARNING', code: 'OF_THIS_BANK' },
            ],
            _links: {},
          }),
        ),
        [],
      );
      assert.deepEqual(verdictsOf(answer('getPayment', status, problem, asProblem)), []);
      assert.deepEqual(verdictsOf(answer('getPayment', status, undefined)), []);
    });

  for (const [name, body, expected] of unreadable)
    test(`is harmful with ${name}`, () => {
      for (const status of described) {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        const found = verdictsOf(answer('cancelPayment', status, text));
        const isUsual = (deviation: string) => deviation.startsWith('usual ');
        assert.deepEqual(
          found.filter((deviation) => !isUsual(deviation)),
          [`harmful ${expected} client-may-fail`],
        );
      }
    });

  test('is harmful as a problem without a code', () => {
    const { code: _, ...withoutCode } = problem;
    assert.deepEqual(verdictsOf(answer('getPayment', 400, withoutCode, asProblem)), [
      'harmful required error/code client-may-fail',
    ]);
  });

  test('is harmful as a page or a text, unless a firewall refuses the client with a page', () => {
    for (const status of [400, 404, 405, 409])
      assert.deepEqual(verdictsOf(answer('getPayment', status, page, asHtml)), [
        'harmful content-type error client-may-fail',
      ]);
    for (const status of [401, 403]) {
      assert.deepEqual(verdictsOf(answer('getPayment', status, page, asHtml)), [
        'usual content-type error none',
      ]);
      const asText = { headers: { 'Content-Type': 'text/plain' } };
      assert.deepEqual(verdictsOf(answer('getPayment', status, 'no', asText)), [
        'harmful content-type error client-may-fail',
      ]);
    }
  });

  test('is notable in the one format with the type of the other', () => {
    const expected = ['notable content-type error client-may-fail'];
    assert.deepEqual(verdictsOf(answer('getPayment', 400, problem)), expected);
    assert.deepEqual(verdictsOf(answer('getPayment', 400, { tppMessages: [message] }, asProblem)), expected);
  });

  test('has usual faults that hide nothing from a client', () => {
    const usual = {
      'required error/type': [{ code: 'RESOURCE_BLOCKED' }, asProblem],
      'max-length error/tppMessages/#/text': [{ tppMessages: [{ ...message, text: 'x'.repeat(501) }] }],
      'unknown error/*': [{ tppMessages: [message], timestamp: 1 }],
      'unknown error/tppMessages/#/*': [{ tppMessages: [{ ...message, canary: 1 }] }],
    } as const;
    for (const [expected, [body, changes]] of Object.entries(usual))
      assert.deepEqual(verdictsOf(answer('cancelPayment', 400, body, changes)), [`usual ${expected} none`]);
  });
});

describe('an error for which the files define no body', () => {
  test('is usual in every form: a proxy in front of the bank may have sent it', () => {
    for (const status of others) {
      for (const [, body] of unreadable) {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        for (const deviation of verdictsOf(answer('getPayment', status, text)))
          assert.match(deviation, /^usual .* none$/);
      }
      assert.deepEqual(verdictsOf(answer('getPayment', status, page, asHtml)), [
        'usual content-type error none',
      ]);
    }
  });
});
