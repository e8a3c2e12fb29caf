/** Header fields as they were sent: order, case and repetitions are kept. */

import { cacheByName } from './name-cache.ts';

/** The name is in the case in which it was sent. */
export type HeaderField = readonly [name: string, value: string];
export type HeaderFields = readonly HeaderField[];

/** Fields of one connection, which are never forwarded (RFC 9110 section 7.6.1, and obsolete ones). */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'http2-settings',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** @param name in lower case */
export const isHopByHop = (name: string): boolean => hopByHop.has(name);

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

/** Whether the bank never receives a field of this name from a TPP. @param name in lower case */
export const isKeptFromBank = (name: string): boolean =>
  gatewayFields.has(name) || clientIdentityFields.test(name);

/** All values of a field, in order. `name` in lower case. */
export function headerValues(fields: HeaderFields, name: string): readonly string[] {
  const values: string[] = [];
  for (const [field, value] of fields) if (isNamed(field, name)) values.push(value);
  return values;
}

/** The first value of a field. `name` in lower case. */
export function headerValue(fields: HeaderFields, name: string): string | undefined {
  return fields.find(([field]) => isNamed(field, name))?.[1];
}

/**
 * Whether a field has this name, in lower case. Called some fifty times per request: most names differ in length, and need no
 * conversion to lower case.
 */
export const isNamed = (field: string, name: string): boolean =>
  field.length === name.length && lowerCase(field) === name;

/** Whether two names differ at most in their case. */
export const isSameName = (one: string, other: string): boolean =>
  one.length === other.length && lowerCase(one) === lowerCase(other);

/** The name of a field in lower case, from a cache. */
export const lowerCase = cacheByName((name) => name.toLowerCase());

/** @param names in lower case */
export function withoutFields(fields: HeaderFields, names: ReadonlySet<string>): HeaderFields {
  return fields.filter(([field]) => !names.has(lowerCase(field)));
}

/** Replaces all fields of that name with a single one. */
export const withField = (fields: HeaderFields, field: HeaderField): HeaderFields =>
  withFields(fields, [field]);

/** Replaces all fields of these names. */
export const withFields = (fields: HeaderFields, replacing: HeaderFields): HeaderFields => [
  ...withoutFields(fields, new Set(replacing.map(([name]) => lowerCase(name)))),
  ...replacing,
];

/** The members of a field that is a list of tokens, in lower case and in order (RFC 9110 section 5.6.1). `name` in lower case. */
export function listMembers(fields: HeaderFields, name: string): readonly string[] {
  const values = headerValues(fields, name);
  return values.length === 0 ? values : values.flatMap(membersIn); // none is the usual case
}

/**
 * The names of fields in a `Connection` field, in lower case: they belong to the connection (RFC 9110 section 7.6.1). None for the
 * usual value `keep-alive`, which names a field that is hop-by-hop in any case.
 */
export const connectionOptions = (value: string): readonly string[] =>
  isNamed(value, 'keep-alive') ? noMembers : membersIn(value);

const noMembers: readonly string[] = [];

const membersIn = (value: string): readonly string[] =>
  value
    .split(',')
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== '');

/** @param rawHeaders Node's flat list of names and values */
export function headerFieldsFrom(rawHeaders: readonly string[]): HeaderFields {
  const fields: HeaderField[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    fields.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  return fields;
}
