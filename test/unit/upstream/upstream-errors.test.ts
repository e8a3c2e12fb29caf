import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable, outcomeUnknown } from '../../../src/request/errors.ts';
import {
  bankUnreachable,
  connectionBroken,
  deadlineBeforeSending,
  malformedResponse,
} from '../../../src/upstream/upstream-errors.ts';

const nodeError = (code: string) => Object.assign(new Error('told by Node'), { code });

describe('failure', () => {
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
    ['NEVER_HEARD_OF', 'destination_unavailable'],
  ] as const) {
    test(`tells ${code} while connecting as ${proxyError}, and that nothing was sent`, () => {
      const error = bankUnreachable(nodeError(code));

      assert.equal(error.code, 'UPSTREAM_UNREACHED');
      assert.equal(error.proxyError, proxyError);
      assert.match(error.message, /nothing was sent/);
      assert.equal(errorTable[error.code].reachedBank, 'no');
    });
  }

  test('takes whatever is thrown while connecting for a bank out of reach', () => {
    for (const thrown of [undefined, null, 'text', new Error('without a code')]) {
      assert.equal(bankUnreachable(thrown).proxyError, 'destination_unavailable');
    }
  });

  test('calls a connection that broke after it was made an unknown outcome', () => {
    const cause = nodeError('ECONNRESET');
    const error = connectionBroken(cause);

    assert.equal(error.code, 'OUTCOME_UNKNOWN');
    assert.equal(error.proxyError, 'connection_terminated');
    assert.equal(error.cause, cause);
  });

  test('tells what the parser refuses from a connection that broke', () => {
    assert.equal(connectionBroken(nodeError('HPE_INVALID_CONSTANT')).code, 'UPSTREAM_MALFORMED');
    assert.equal(connectionBroken(nodeError('HPE_INVALID_CONSTANT')).proxyError, 'http_protocol_error');
    assert.equal(
      connectionBroken(nodeError('HPE_HEADER_OVERFLOW')).proxyError,
      'http_response_header_section_size',
    );
  });

  test('never says that nothing was sent when something may have been', () => {
    for (const error of [
      outcomeUnknown(),
      connectionBroken(nodeError('EPIPE')),
      malformedResponse('Odd', undefined, 'x'),
    ]) {
      assert.equal(errorTable[error.code].reachedBank, 'maybe');
      assert.doesNotMatch(error.message, /nothing was sent/);
    }
  });

  test('asks for a retry when no connection became free', () => {
    const error = deadlineBeforeSending();

    assert.equal(error.code, 'QUEUE_TIMEOUT');
    assert.equal(errorTable.QUEUE_TIMEOUT.retryAfterSeconds, 1);
    assert.equal(errorTable[error.code].reachedBank, 'no');
  });

  test('repeats nothing of what the cause says', () => {
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
