import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  asGatewayError,
  type ErrorCode,
  errorTable,
  GatewayError,
  withEnvironment,
} from '../../../src/request/errors.ts';

const rows = Object.entries(errorTable);
const codes = (wanted: (kind: (typeof errorTable)[ErrorCode]) => boolean) =>
  rows.filter(([, kind]) => wanted(kind)).map(([code]) => code);

describe('the error table', () => {
  test('has 5xx statuses only for errors that the request did not cause', () => {
    for (const [code, { status, origin }] of rows) {
      assert.equal(status >= 500 && status < 600, code === 'NOT_CACHED' || origin !== 'tpp', code);
      assert.ok(status >= 400 && status < 600, code);
    }
  });

  test('has reachedBank "maybe" exactly for errors whose request the bank can have received', () => {
    assert.deepEqual(
      codes((kind) => kind.reachedBank === 'maybe'),
      ['DUPLICATE_IN_DOUBT', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN', 'INTERNAL'],
    );
  });

  test('has status 408, which lets clients repeat a request automatically, only for an incomplete request', () => {
    assert.deepEqual(
      codes((kind) => kind.status === 408),
      ['REQUEST_TIMEOUT'],
    );
  });

  test("has codes that are valid in a URI, and message codes in the standard's form", () => {
    for (const [code, { tppCode, proxyError }] of rows) {
      assert.match(code, /^[A-Z]+(_[A-Z]+)*$/);
      assert.match(tppCode, /^[A-Z]+(_[A-Z]+)*$/);
      assert.match(proxyError, /^[a-z]+(_[a-z]+)*$/);
    }
  });
});

describe('a GatewayError', () => {
  test('has its cause, and the more specific error type instead of the one in the table', () => {
    const cause = new Error('ECONNREFUSED');
    const error = new GatewayError('UPSTREAM_UNREACHED', 'The bank refused.', {
      cause,
      proxyError: 'connection_refused',
    });

    assert.equal(error.proxyError, 'connection_refused');
    assert.equal(error.cause, cause);
    assert.equal(new GatewayError('UPSTREAM_UNREACHED', '').proxyError, 'destination_unavailable');
  });

  test('keeps all other properties when its environment is added', () => {
    const details = { cause: 'x', headers: [['Allow', 'GET']], field: 'X', proxyError: 'dns_error' } as const;
    const error = withEnvironment(new GatewayError('METHOD_NOT_ALLOWED', 'Not offered.', details), 'sandbox');

    assert.equal(error.code, 'METHOD_NOT_ALLOWED');
    assert.equal(error.message, 'Not offered.');
    assert.equal(error.environment, 'sandbox');
    const { cause, headers, field, proxyError } = error;
    assert.deepEqual({ cause, headers, field, proxyError }, details);
  });

  test('is made from any other thrown value as INTERNAL, without quoting it', () => {
    const thrown = new TypeError('secret');
    const error = asGatewayError(thrown);

    assert.equal(error.code, 'INTERNAL');
    assert.equal(error.cause, thrown);
    assert.ok(!error.message.includes('secret'));
    assert.equal(asGatewayError(error), error);
    assert.equal(asGatewayError(undefined).code, 'INTERNAL');
  });
});
