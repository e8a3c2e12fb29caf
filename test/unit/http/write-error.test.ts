/** An error as the answer that a TPP gets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { errorResponse } from '../../../src/http/write-error.ts';
import { headerValue, headerValues } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';

const caller = { requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721', accept: undefined };

describe('errorAnswer', () => {
  test('has the status of its row, with the words that belong to it', () => {
    const { status, reason } = errorResponse(new GatewayError('PATH_UNKNOWN', 'No.'), caller);
    assert.deepEqual([status, reason], [404, 'Not Found']);
  });

  test('carries the fields of the error itself, such as Allow, and the id it is given', () => {
    const headers = [['Allow', 'GET, DELETE']] as const;
    const answer = errorResponse(new GatewayError('METHOD_NOT_ALLOWED', 'No.', { headers }), caller);
    assert.equal(headerValue(answer.headers, 'allow'), 'GET, DELETE');
    assert.equal(headerValue(answer.headers, 'x-request-id'), caller.requestId);
  });

  test('names the environment if it is known, and only then', () => {
    const known = errorResponse(
      new GatewayError('OUTCOME_UNKNOWN', 'No.', { environment: 'sandbox' }),
      caller,
    );
    const unknown = errorResponse(new GatewayError('OUTCOME_UNKNOWN', 'No.'), caller);
    assert.deepEqual(headerValues(known.headers, 'penstock-environment'), ['sandbox']);
    assert.deepEqual(headerValues(unknown.headers, 'penstock-environment'), []);
  });

  test('tells the finer error type in Proxy-Status', () => {
    const error = new GatewayError('UPSTREAM_UNREACHED', 'No.', { proxyError: 'dns_error' });
    const field = headerValue(errorResponse(error, caller).headers, 'proxy-status');
    assert.equal(field, 'penstock; error=dns_error; details="No."');
  });

  test('has a Proxy-Status that no text can break out of (RFC 8941 section 3.3.3)', () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    });
    fc.assert(
      fc.property(printable, (text) => {
        const field = headerValue(
          errorResponse(new GatewayError('INTERNAL', text), caller).headers,
          'proxy-status',
        );
        const [, details = ''] =
          /^penstock; error=[a-z_]+; details="((?:[^"\\]|\\["\\])*)"$/.exec(field ?? '') ?? [];
        assert.equal(details.replaceAll(/\\(["\\])/g, '$1'), text);
      }),
    );
  });

  test('has a body in the format that Accept prefers, with the type that says so', () => {
    const error = new GatewayError('HEADER_MALFORMED', 'No.', { field: 'host' });
    const plain = errorResponse(error, caller);
    const problem = errorResponse(error, { ...caller, accept: 'application/problem+json' });
    assert.equal(headerValue(plain.headers, 'content-type'), 'application/json');
    assert.deepEqual(JSON.parse(plain.body.toString()), {
      tppMessages: [{ category: 'ERROR', code: 'FORMAT_ERROR', path: 'host', text: 'No.' }],
    });
    assert.equal(headerValue(problem.headers, 'content-type'), 'application/problem+json');
    assert.equal(JSON.parse(problem.body.toString()).code, 'FORMAT_ERROR');
  });
});
