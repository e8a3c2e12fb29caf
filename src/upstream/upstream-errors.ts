/** The errors of a call to the bank. The error code decides above all whether the bank can have seen the request. */

import { GatewayError } from '../request/errors.ts';
import { TunnelError } from './egress-proxy.ts';

/** No connection was established: nothing was sent. */
export function bankUnreachable(cause: unknown): GatewayError {
  return unreachableError(`${describeConnectError(cause)}; nothing was sent. Try again later.`, cause);
}

/** The bank has refused the client certificate after the request was written, without reading the request. */
export function clientCertificateRefused(cause: unknown): GatewayError {
  return unreachableError(
    `${describeConnectError(cause)}, and did not read the request. Try again later.`,
    cause,
  );
}

/**
 * Whether the error says that the bank refuses the client certificate. In TLS 1.3 this alert can arrive after the gateway
 * has begun to send; the bank reads no data before it has accepted the certificate (RFC 8446 sections 4.4.2.4 and 4.6.2).
 */
export const isClientCertificateAlert = (cause: unknown): boolean =>
  Object.hasOwn(clientCertificateAlerts, tlsAlertOf(errorCodeOf(cause)));

const unreachableError = (message: string, cause: unknown): GatewayError =>
  new GatewayError('UPSTREAM_UNREACHED', message, { cause, proxyError: proxyErrorOf(errorCodeOf(cause)) });

/** The deadline passed before the request was sent. */
export function deadlineBeforeSending(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The deadline passed while the request waited in the queue; nothing was sent. Try again.',
  );
}

/** An established connection failed before the response, or the response cannot be parsed. */
export function connectionBroken(cause: unknown): GatewayError {
  if (errorCodeOf(cause) === 'HPE_HEADER_OVERFLOW')
    return malformedResponse(
      "The header of the bank's response is too large",
      cause,
      'http_response_header_section_size',
    );
  if (errorCodeOf(cause).startsWith('HPE_'))
    return malformedResponse("The bank's response is not valid HTTP", cause, 'http_protocol_error');
  return new GatewayError('OUTCOME_UNKNOWN', 'The connection to the bank closed before its response.', {
    cause,
    proxyError: 'connection_terminated',
  });
}

/** The bank began to respond, but the response is not complete or not valid. */
export function malformedResponse(problem: string, cause: unknown, proxyError: string): GatewayError {
  return new GatewayError('UPSTREAM_MALFORMED', `${problem}.`, { cause, proxyError });
}

function describeConnectError(cause: unknown): string {
  if (cause instanceof TunnelError) return `The proxy refused the connection to the bank (${cause.status})`;
  const code = errorCodeOf(cause);
  const kind = proxyErrorOf(code);
  if (kind === 'tls_certificate_error')
    return bankCertificateErrors[code] ?? "The bank's certificate is not trusted";
  if (kind === 'tls_alert_received')
    return clientCertificateAlerts[tlsAlertOf(code)] ?? 'The bank refused the TLS handshake';
  return kind === 'tls_protocol_error' ? 'The TLS handshake with the bank failed' : 'The bank is unreachable';
}

/** The TLS alert in an OpenSSL error code, such as `UNKNOWN_CA` in `ERR_SSL_TLSV1_ALERT_UNKNOWN_CA`; otherwise empty. */
const tlsAlertOf = (code: string): string => /^ERR_SSL_.*_ALERT_(.+)$/.exec(code)?.[1] ?? '';

/** TLS alerts about the client certificate (RFC 8446 section 6.2). */
const clientCertificateAlerts: Readonly<Record<string, string>> = {
  BAD_CERTIFICATE: "The bank has refused the gateway's client certificate",
  UNSUPPORTED_CERTIFICATE: "The bank has refused the gateway's client certificate",
  CERTIFICATE_UNKNOWN: "The bank has refused the gateway's client certificate",
  CERTIFICATE_REVOKED: "The bank has refused the gateway's client certificate as revoked",
  CERTIFICATE_EXPIRED: "The bank has refused the gateway's client certificate as expired",
  CERTIFICATE_REQUIRED: 'The bank requires a client certificate, and the gateway sent none',
  UNKNOWN_CA: "The bank does not trust the issuer of the gateway's client certificate",
  ACCESS_DENIED: "The bank denied access to the gateway's client certificate",
};

const bankCertificateErrors: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "The bank's certificate has expired",
  CERT_NOT_YET_VALID: "The bank's certificate is not valid yet",
  CERT_REVOKED: "The bank's certificate is revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "The bank's certificate does not match its host name",
};

/** OpenSSL has too many codes for a table. */
function proxyErrorOf(code: string): string {
  if (!code.startsWith('ERR_SSL_')) return proxyErrors[code] ?? 'destination_unavailable';
  return code.includes('_ALERT_') ? 'tls_alert_received' : 'tls_protocol_error';
}

/** Node's codes for connections that were not established, as error types of RFC 9209 section 2.3. */
const proxyErrors: Readonly<Record<string, string>> = {
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

function errorCodeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}
