/** Selects the fields of a TPP's request that are sent to the bank. */

import { endToEndFields, type HeaderFields, lowerCase } from '../pis/headers.ts';

/** Fields for the gateway itself, fields of proxies, and `Host` and `Content-Length`, which each hop sets. */
const gatewayFields: ReadonlySet<string> = new Set([
  'content-length',
  'expect',
  'forwarded',
  'host',
  'penstock-environment',
  'x-api-key',
  'x-real-ip',
  // Some frameworks let these override the request line: the bank must carry out the request that was validated here.
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-method',
  'x-original-uri',
  'x-original-url',
  'x-rewrite-url',
]);

/**
 * Fields in which a proxy that terminates TLS passes on the client's identity (RFC 9440, and what nginx, HAProxy, Envoy,
 * AWS and Azure send). A bank might trust them, but its client is this gateway.
 */
const clientIdentityFields =
  /^(x-forwarded-|x-internal-|client-cert|x-client-(cert|verify|dn)|(x-)?ssl-client|x-ssl-|x-tls-|x-amzn-mtls-|x-arr-|tpp-qwac)/;

/** All other end-to-end fields, with names and values as they were sent. */
export function outboundHeaders(fields: HeaderFields): HeaderFields {
  return endToEndFields(fields).filter(([field]) => {
    const name = lowerCase(field);
    return !gatewayFields.has(name) && !clientIdentityFields.test(name);
  });
}
