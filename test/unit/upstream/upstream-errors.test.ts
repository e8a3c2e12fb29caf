import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable, outcomeUnknown } from '../../../src/request/errors.ts';
import {
  bankUnreachable,
  connectionBroken,
  deadlineBeforeSending,
  malformedResponse,
} from '../../../src/upstream/upstream-errors.ts';

const nodeError = (code: string) => Object.assign(new Error('error of Node'), { code });

describe('error of a call to the bank', () => {
  for (const [code, proxyError] of [
    ['CONNECT_TIMEOUT', 'connection_timeout'],
    ['ECONNREFUSED', 'connection_refused'],
    ['ENOTFOUND', 'dns_error'],
    ['EAI_AGAIN', 'dns_error'],
    ['EHOSTUNREACH', 'destination_ip_unroutable'],
    ['CERT_HAS_EXPIRED', 'tls_certificate_error'],
    ['CERT_NOT_YET_VALID', 'tls_certificate_error'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_certificate_error'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_certificate_error'],
    ['EPROTO', 'tls_protocol_error'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_protocol_error'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls_alert_received'],
    ['UNKNOWN_CODE', 'destination_unavailable'],
  ] as const) {
    test(`reports ${code} while connecting as ${proxyError} and as not sent`, () => {
      const error = bankUnreachable(nodeError(code));

      assert.equal(error.code, 'UPSTREAM_UNREACHED');
      assert.equal(error.proxyError, proxyError);
      assert.match(error.message, /nothing was sent/);
      assert.equal(errorTable[error.code].reachedBank, 'no');
    });
  }

  test('reports any other value that is thrown while connecting as destination_unavailable', () => {
    for (const thrown of [undefined, null, 'text', new Error('without a code')]) {
      assert.equal(bankUnreachable(thrown).proxyError, 'destination_unavailable');
    }
  });

  test('reports an unknown outcome if an established connection fails', () => {
    const cause = nodeError('ECONNRESET');
    const error = connectionBroken(cause);

    assert.equal(error.code, 'OUTCOME_UNKNOWN');
    assert.equal(error.proxyError, 'connection_terminated');
    assert.equal(error.cause, cause);
  });

  test('distinguishes a response that cannot be parsed from a failed connection', () => {
    assert.equal(connectionBroken(nodeError('HPE_INVALID_CONSTANT')).code, 'UPSTREAM_MALFORMED');
    assert.equal(connectionBroken(nodeError('HPE_INVALID_CONSTANT')).proxyError, 'http_protocol_error');
    assert.equal(
      connectionBroken(nodeError('HPE_HEADER_OVERFLOW')).proxyError,
      'http_response_header_section_size',
    );
  });

  test('never states that nothing was sent if the bank may have seen the request', () => {
    for (const error of [
      outcomeUnknown(),
      connectionBroken(nodeError('EPIPE')),
      malformedResponse('Odd', undefined, 'x'),
    ]) {
      assert.equal(errorTable[error.code].reachedBank, 'maybe');
      assert.doesNotMatch(error.message, /nothing was sent/);
    }
  });

  test('asks for a retry if the deadline passed before sending', () => {
    const error = deadlineBeforeSending();

    assert.equal(error.code, 'QUEUE_TIMEOUT');
    assert.equal(errorTable.QUEUE_TIMEOUT.retryAfterSeconds, 1);
    assert.equal(errorTable[error.code].reachedBank, 'no');
  });

  test('never quotes the cause', () => {
    const cause = new Error('Invalid value DE89370400440532013000');
    for (const error of [
      bankUnreachable(cause),
      connectionBroken(cause),
      malformedResponse('Odd', cause, 'x'),
    ]) {
      assert.doesNotMatch(error.message, /DE89/);
    }
  });
});
