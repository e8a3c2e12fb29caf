/** Header fields on both sides of the gateway, compared without the gateway's own helpers. */

export type Field = readonly [name: string, value: string];

/** Fields of one connection, or made by each sender: they may differ between the two connections. */
const ofTheConnection = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host', 'date'];

/** Fields that the gateway adds to every response, or to a status response. */
const ofTheGateway = ['penstock-environment', 'cache-control', 'cache-status'];

/** The fields that must be the same on both sides, sorted by name; repeated fields keep their order. */
export function forwardedFields(fields: readonly Field[]): readonly Field[] {
  return sorted(withoutNames([...ofTheConnection, ...ofTheGateway], fields));
}

/** @param names in lower case */
export const withoutNames = (names: readonly string[], fields: readonly Field[]): readonly Field[] =>
  fields.filter(([name]) => !names.includes(name.toLowerCase()));

/** All values of a field, in order. @param name case-insensitive */
export const valuesOf = (fields: readonly Field[], name: string): readonly string[] =>
  fields.filter(([field]) => field.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

/** The order between fields of different names means nothing (RFC 9110 section 5.3). */
const sorted = (fields: readonly Field[]) =>
  fields.toSorted(([one], [other]) => one.toLowerCase().localeCompare(other.toLowerCase()));

/** Fields that never go to the bank from a TPP: of the connection, for the gateway, and of proxies. */
export const namesKeptFromBank: readonly string[] = [
  'Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Proxy-Connection',
  'Proxy-Authorization',
  'Host',
  'Content-Length',
  'Expect',
  'X-API-Key',
  'Penstock-Environment',
  'Forwarded',
  'X-Forwarded-For',
  'X-Real-IP',
  'X-HTTP-Method-Override',
  'X-Original-URL',
  'Client-Cert',
  'X-Client-Cert',
  'SSL-Client-Verify',
  'X-SSL-Client-DN',
  'TPP-QWAC',
];
