/** What can go wrong with one call to the bank, told as an error of the table: above all, whether the bank can have seen it. */

import { GatewayError } from '../flow/errors.ts';

/** No connection was made within the time, or it was refused: nothing was sent. */
export function unreached(cause: unknown): GatewayError {
  return new GatewayError(
    'UPSTREAM_UNREACHED',
    'The bank could not be reached; nothing was sent. Try again later.',
    {
      cause,
      proxyError: connectErrorOf(codeOf(cause)),
    },
  );
}

/** The deadline passed before the request had a connection, or even before it was its turn: nothing was sent. */
export function neverSent(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The deadline passed before the turn of this request came; nothing was sent. Try again.',
  );
}

/** A connection that had been made broke before the bank answered, or its answer makes no sense. */
export function broken(cause: unknown): GatewayError {
  if (codeOf(cause) === 'HPE_HEADER_OVERFLOW')
    return malformed("The bank's header is too large", cause, 'http_response_header_section_size');
  if (codeOf(cause).startsWith('HPE_'))
    return malformed('The bank did not answer in valid HTTP', cause, 'http_protocol_error');
  return new GatewayError('OUTCOME_UNKNOWN', 'The connection broke before the bank answered.', {
    cause,
    proxyError: 'connection_terminated',
  });
}

/** The bank began to answer, but what came is not a whole HTTP answer. */
export function malformed(what: string, cause: unknown, proxyError: string): GatewayError {
  return new GatewayError('UPSTREAM_MALFORMED', `${what}.`, { cause, proxyError });
}

/** OpenSSL's own codes are too many for a table. */
function connectErrorOf(code: string): string {
  if (!code.startsWith('ERR_SSL_')) return connectErrors[code] ?? 'destination_unavailable';
  return code.includes('_ALERT_') ? 'tls_alert_received' : 'tls_protocol_error';
}

/** Node's codes of a connection that was not made, as error types of RFC 9209 section 2.3. */
const connectErrors: Readonly<Record<string, string>> = {
  CONNECT_TIMEOUT: 'connection_timeout',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_terminated',
  EAI_AGAIN: 'dns_error',
  ENOTFOUND: 'dns_error',
  EHOSTUNREACH: 'destination_ip_unroutable',
  ENETUNREACH: 'destination_ip_unroutable',
  ETIMEDOUT: 'connection_timeout',
  CERT_HAS_EXPIRED: 'tls_certificate_error',
  CERT_NOT_YET_VALID: 'tls_certificate_error',
  CERT_REVOKED: 'tls_certificate_error',
  CERT_UNTRUSTED: 'tls_certificate_error',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_certificate_error',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_certificate_error',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_certificate_error',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_certificate_error',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_certificate_error',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_certificate_error',
  EPROTO: 'tls_protocol_error',
};

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}
