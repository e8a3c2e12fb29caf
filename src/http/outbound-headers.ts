/** Which fields of a TPP's request go on to the bank. */

import { endToEndFields, type HeaderFields, lowerCase } from '../pis/headers.ts';

/** Meant for the gateway or made by proxies on the way; `Host` and the length are the next hop's own. */
const gatewayFields: ReadonlySet<string> = new Set([
  'content-length',
  'expect',
  'forwarded',
  'host',
  'penstock-environment',
  'x-api-key',
  'x-real-ip',
  // Some frameworks let these have their way over the request line: the bank must carry out what was checked here.
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-method',
  'x-original-uri',
  'x-original-url',
  'x-rewrite-url',
]);

/**
 * How proxies that end TLS tell who the client is (RFC 9440, and what nginx, HAProxy, Envoy, AWS and Azure write). A bank
 * may believe them; to it, the client is this gateway.
 */
const clientIdentityFields =
  /^(x-forwarded-|x-internal-|client-cert|x-client-(cert|verify|dn)|(x-)?ssl-client|x-ssl-|x-tls-|x-amzn-mtls-|x-arr-|tpp-qwac)/;

/** All end-to-end fields but those; names and values stay as they were written. */
export function outboundHeaders(fields: HeaderFields): HeaderFields {
  return endToEndFields(fields).filter(([field]) => {
    const name = lowerCase(field);
    return !gatewayFields.has(name) && !clientIdentityFields.test(name);
  });
}
