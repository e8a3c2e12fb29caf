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

describe('the table of errors', () => {
  test('has fitting statuses: 4xx is never the bank, 5xx never a mistake of the request', () => {
    for (const [code, { status, origin }] of rows) {
      assert.equal(status >= 500 && status < 600, code === 'NOT_CACHED' || origin !== 'tpp', code);
      assert.ok(status >= 400 && status < 600, code);
    }
  });

  test('says "maybe" exactly where the bank can have seen the request', () => {
    assert.deepEqual(
      codes((kind) => kind.reachedBank === 'maybe'),
      ['DUPLICATE_IN_DOUBT', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN', 'INTERNAL'],
    );
  });

  test('never invites a client to repeat a payment by itself: 408 only while the request was still coming', () => {
    assert.deepEqual(
      codes((kind) => kind.status === 408),
      ['REQUEST_TIMEOUT'],
    );
  });

  test("has names that fit a URI, and message codes of the standard's form", () => {
    for (const [code, { tppCode, proxyError }] of rows) {
      assert.match(code, /^[A-Z]+(_[A-Z]+)*$/);
      assert.match(tppCode, /^[A-Z]+(_[A-Z]+)*$/);
      assert.match(proxyError, /^[a-z]+(_[a-z]+)*$/);
    }
  });
});

describe('a GatewayError', () => {
  test('carries code, cause and the finer error type', () => {
    const cause = new Error('ECONNREFUSED');
    const error = new GatewayError('UPSTREAM_UNREACHED', 'The bank refused.', {
      cause,
      proxyError: 'connection_refused',
    });

    assert.equal(error.proxyError, 'connection_refused');
    assert.equal(error.cause, cause);
    assert.equal(new GatewayError('UPSTREAM_UNREACHED', '').proxyError, 'destination_unavailable');
  });

  test('keeps everything when it learns its environment', () => {
    const kept = { cause: 'x', headers: [['Allow', 'GET']], field: 'X', proxyError: 'dns_error' } as const;
    const error = withEnvironment(new GatewayError('METHOD_NOT_ALLOWED', 'Not offered.', kept), 'sandbox');

    assert.equal(error.code, 'METHOD_NOT_ALLOWED');
    assert.equal(error.message, 'Not offered.');
    assert.equal(error.environment, 'sandbox');
    const { cause, headers, field, proxyError } = error;
    assert.deepEqual({ cause, headers, field, proxyError }, kept);
  });

  test('is made of whatever was thrown, once, without quoting it', () => {
    const thrown = new TypeError('secret');
    const error = asGatewayError(thrown);

    assert.equal(error.code, 'INTERNAL');
    assert.equal(error.cause, thrown);
    assert.ok(!error.message.includes('secret'));
    assert.equal(asGatewayError(error), error);
    assert.equal(asGatewayError(undefined).code, 'INTERNAL');
  });
});
