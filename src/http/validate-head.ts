/**
 * Validates the head of a request before any other code reads it.
 *
 * Node's parser refuses bytes that are ambiguous on the wire. This file refuses heads that become ambiguous when two
 * programs read them: the bank must receive the request that was validated here (RFC 9112 section 11.2).
 */

import { connectionOptions, type HeaderFields, headerValue, lowerCase } from '../pis/headers.ts';
import { GatewayError } from '../request/errors.ts';

/** Node's own limit does not refuse: it silently drops the fields above it. */
const maxFields = 100;

/** Fields that must not be repeated: two programs may use different ones. */
const singletonFields: ReadonlySet<string> = new Set([
  'authorization',
  'consent-id',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'digest',
  'expect',
  'host',
  'penstock-environment',
  'psu-id',
  'psu-id-type',
  'psu-corporate-id',
  'psu-corporate-id-type',
  'psu-ip-address',
  'signature',
  'tpp-nok-redirect-uri',
  'tpp-notification-uri',
  'tpp-redirect-uri',
  'tpp-signature-certificate',
  'transfer-encoding',
  'x-api-key',
  'x-request-id',
]);

/**
 * @param httpVersion `1.1` or `1.0`; any other text is refused
 * @throws GatewayError HEADERS_TOO_LARGE, HEADER_MALFORMED, REQUEST_ID_INVALID, EXPECTATION_FAILED
 */
export function validateHead(fields: HeaderFields, httpVersion: string): void {
  if (fields.length > maxFields) {
    throw new GatewayError('HEADERS_TOO_LARGE', `The request has more than ${maxFields} header fields.`);
  }
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw malformedHeader(undefined, 'The protocols accepted here are HTTP/1.1 and HTTP/1.0.');
  }
  validateNames(fields);
  if (httpVersion === '1.1' && headerValue(fields, 'host') === undefined) {
    throw malformedHeader('host', 'A request needs a Host.');
  }
  const named = connectionOptions(fields).find((option) => singletonFields.has(option));
  if (named) throw malformedHeader('connection', `Connection names ${named}, which must reach the bank.`);
  validateLength(fields, httpVersion);

  const expectation = headerValue(fields, 'expect');
  if (expectation !== undefined && expectation.toLowerCase() !== '100-continue') {
    throw new GatewayError('EXPECTATION_FAILED', 'The only expectation met here is 100-continue.', {
      field: 'Expect',
    });
  }
}

function validateNames(fields: HeaderFields): void {
  const seen = new Set<string>();
  for (const [field] of fields) {
    const name = lowerCase(field);
    if (name.includes('_'))
      throw malformedHeader(undefined, 'A header name holds an underscore; use a hyphen.');
    if (singletonFields.has(name) && seen.has(name)) {
      const code = name === 'x-request-id' ? 'REQUEST_ID_INVALID' : 'HEADER_MALFORMED';
      throw new GatewayError(code, `The header ${name} appears more than once; send it once.`, {
        field: name,
      });
    }
    seen.add(name);
  }
}

function validateLength(fields: HeaderFields, httpVersion: string): void {
  const coding = headerValue(fields, 'transfer-encoding');
  if (coding !== undefined && coding !== 'chunked') {
    throw malformedHeader(
      'transfer-encoding',
      'The only transfer coding understood here is exactly "chunked".',
    );
  }
  if (coding !== undefined && httpVersion !== '1.1') {
    throw malformedHeader('transfer-encoding', 'A transfer coding needs HTTP/1.1.');
  }
  const length = headerValue(fields, 'content-length');
  if (length !== undefined && !/^(0|[1-9][0-9]{0,14})$/.test(length)) {
    throw malformedHeader(
      'content-length',
      'Content-Length must be a plain decimal number without leading zeros.',
    );
  }
}

function malformedHeader(field: string | undefined, message: string): GatewayError {
  return new GatewayError('HEADER_MALFORMED', message, field === undefined ? {} : { field });
}
