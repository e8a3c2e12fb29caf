import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { errorBody } from '../../../src/pis/tpp-messages.ts';
import { errorTable } from '../../../src/request/errors.ts';

const error = { code: 'REQUEST_ID_INVALID', tppCode: 'FORMAT_ERROR', text: 'X-Request-ID is not a UUID.' };
const problem = 'application/problem+json';

describe('an error body', () => {
  test('in application/json contains tppMessages with the path of the wrong field', () => {
    const body = errorBody({ ...error, field: 'X-Request-ID' }, 'application/json');

    assert.deepEqual(JSON.parse(body), {
      tppMessages: [
        {
          category: 'ERROR',
          code: 'FORMAT_ERROR',
          path: 'X-Request-ID',
          text: 'REQUEST_ID_INVALID: X-Request-ID is not a UUID.',
        },
      ],
    });
  });

  test('has no path if no field is wrong', () => {
    assert.ok(!errorBody(error, 'application/json').includes('"path"'));
    assert.ok(!errorBody({ ...error, field: undefined }, 'application/json').includes('"path"'));
  });

  test('in application/problem+json contains problem details', () => {
    assert.deepEqual(JSON.parse(errorBody(error, problem)), {
      type: 'urn:penstock:error:REQUEST_ID_INVALID',
      title: 'Request id invalid',
      detail: 'X-Request-ID is not a UUID.',
      code: 'FORMAT_ERROR',
    });
  });

  test('names the payment in both formats, with its address and that of its status', () => {
    const url = 'https://gateway.example/berlingroup/v1/payments/sepa-credit-transfers/p1';
    for (const format of ['application/json', problem] as const) {
      const body = JSON.parse(errorBody({ ...error, payment: { id: 'p1', url } }, format));
      assert.equal(body.paymentId, 'p1');
      assert.deepEqual(body._links, { self: { href: url }, status: { href: `${url}/status` } });
    }
  });

  test('names every error of the gateway completely within the 70 characters of the standard', () => {
    for (const [code, { tppCode }] of Object.entries(errorTable)) {
      const { type, title } = JSON.parse(errorBody({ code, tppCode, text: '' }, problem));
      assert.equal(type, `urn:penstock:error:${code}`);
      assert.ok(type.length <= 70 && title.length <= 70 && !title.endsWith('…'), title);
      assert.ok(URL.canParse(type));
    }
  });

  test('is well-formed and respects the length limits of the standard for any text', () => {
    const text = fc.string({ unit: 'binary', minLength: 0, maxLength: 1200, size: 'max' });
    fc.assert(
      fc.property(text, fc.string({ maxLength: 200, size: 'max' }), (words, code) => {
        const message = JSON.parse(errorBody({ ...error, text: words }, 'application/json')).tppMessages[0];
        const details = JSON.parse(errorBody({ ...error, code, text: words }, problem));
        for (const [value, limit] of [
          [message.text, 500],
          [details.detail, 500],
          [details.title, 70],
          [details.type, 70],
        ]) {
          assert.ok(Array.from(value).length <= limit);
          assert.ok(value.isWellFormed());
        }
        const whole = `${error.code}: ${words}`;
        if (Array.from(whole).length <= 500) assert.equal(message.text, whole);
      }),
    );
  });
});
