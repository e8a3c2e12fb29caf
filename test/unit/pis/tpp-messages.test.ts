import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { errorBody, prefersProblem } from '../../../src/pis/tpp-messages.ts';
import { errorTable } from '../../../src/request/errors.ts';

const error = { code: 'REQUEST_ID_INVALID', tppCode: 'FORMAT_ERROR', text: 'X-Request-ID is not a UUID.' };
const problemPlease = 'application/problem+json';

describe('an error body', () => {
  test('is tppMessages by default', () => {
    const { contentType, body } = errorBody({ ...error, field: 'X-Request-ID' }, undefined);

    assert.equal(contentType, 'application/json');
    assert.deepEqual(JSON.parse(body), {
      tppMessages: [
        {
          category: 'ERROR',
          code: 'FORMAT_ERROR',
          path: 'X-Request-ID',
          text: 'X-Request-ID is not a UUID.',
        },
      ],
    });
  });

  test('has no path if no field is at fault', () => {
    assert.ok(!errorBody(error, 'application/json').body.includes('"path"'));
    assert.ok(!errorBody({ ...error, field: undefined }, undefined).body.includes('"path"'));
  });

  test('is a problem for whoever prefers one', () => {
    const { contentType, body } = errorBody(error, problemPlease);

    assert.equal(contentType, 'application/problem+json');
    assert.deepEqual(JSON.parse(body), {
      type: 'urn:penstock:error:REQUEST_ID_INVALID',
      title: 'Request id invalid',
      detail: 'X-Request-ID is not a UUID.',
      code: 'FORMAT_ERROR',
    });
  });

  test('names every error of the gateway within the 70 characters of the standard, uncut', () => {
    for (const [code, { tppCode }] of Object.entries(errorTable)) {
      const { type, title } = JSON.parse(errorBody({ code, tppCode, text: '' }, problemPlease).body);
      assert.equal(type, `urn:penstock:error:${code}`);
      assert.ok(type.length <= 70 && title.length <= 70 && !title.endsWith('…'), title);
      assert.ok(URL.canParse(type));
    }
  });

  test('is well-formed and never longer than the standard allows, whatever the text', () => {
    const text = fc.string({ unit: 'binary', minLength: 0, maxLength: 1200, size: 'max' });
    fc.assert(
      fc.property(text, fc.string({ maxLength: 200, size: 'max' }), (words, code) => {
        const message = JSON.parse(errorBody({ ...error, text: words }, '*/*').body).tppMessages[0];
        const problem = JSON.parse(errorBody({ ...error, code, text: words }, problemPlease).body);
        for (const [value, limit] of [
          [message.text, 500],
          [problem.detail, 500],
          [problem.title, 70],
          [problem.type, 70],
        ]) {
          assert.ok(Array.from(value).length <= limit);
          assert.ok(value.isWellFormed());
        }
        if (Array.from(words).length <= 500) assert.equal(message.text, words);
      }),
    );
  });
});

describe('problem+json', () => {
  const preferred = [
    'application/problem+json',
    'Application/Problem+JSON',
    'application/problem+json, application/json;q=0.9',
    'application/json; q=0.5 , application/problem+json;q=0.501',
    'application/problem+json, */*;q=0.1',
    'application/problem+json, application/*;q=0.8',
    'application/json;q=0, application/*',
    'application/problem+json;q=0.5, application/*;q=0.1, */*;q=0.9',
    'application/xml, application/problem+json;q=0.001',
    ',, application/problem+json ,',
    'application/problem+json;charset=utf-8',
    'application/json;profile="a,b;q=1";q=0.2, application/problem+json;Q=0.3',
  ];
  for (const accept of preferred) {
    test(`is preferred by "${accept}"`, () => assert.equal(prefersProblem(accept), true));
  }

  const notPreferred = [
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/xml',
    'application/json, application/problem+json',
    'application/problem+json;q=0.5, application/json;q=0.5',
    'application/problem+json;q=0.5, */*',
    'application/problem+json;q=0',
    'application/json;q=0.2, application/json, application/problem+json;q=0.5',
    'application/problem+json;q=0, application/json;q=0',
    '*/*;q=0.1, application/problem+json;q=0.05, application/*;q=0.2',
    'application/json;charset=utf-8, application/problem+json',
  ];
  for (const accept of notPreferred) {
    test(`is not preferred by ${JSON.stringify(accept)}`, () => assert.equal(prefersProblem(accept), false));
  }

  const malformed = [
    'application/problem+json;q=2',
    'application/problem+json;q=0.1234',
    'application/problem+json;q=',
    'application/problem+json;q="1"',
    'application/problem+json;q=-1',
    'application/problem+json;q=1, x',
    'application/problem+json; application/json;q=0.1',
    'application/problem+json application/json;q=0.1',
    'application/problem+json, text/html;level="1',
    'application/problem+json/x',
    'application/problem+json\n',
  ];
  for (const accept of malformed) {
    test(`is not preferred by the malformed ${JSON.stringify(accept)}`, () => {
      assert.equal(prefersProblem(accept), false);
    });
  }

  test('is decided in linear time and without throwing, whatever the field', { timeout: 5_000 }, () => {
    fc.assert(fc.property(fc.string(), (accept) => typeof prefersProblem(accept) === 'boolean'));
    for (const piece of [',', ' ', 'a/b,', 'a/b;', '"', 'a/b;c="', '\\"', 'a/b;q=1;', 'a/b ,', 'a']) {
      prefersProblem(piece.repeat(16_384));
      prefersProblem(`a/b;c="${piece.repeat(16_384)}`);
    }
  });
});
