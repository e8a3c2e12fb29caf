/** Header fields on both sides of the gateway, compared without the gateway's own helpers. */

export type Field = readonly [name: string, value: string];

/** Fields of one connection, or made by each sender: they may differ between the two connections. */
const ofTheConnection = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host', 'date'];

/** Fields that the gateway adds to every response, or to a status response. */
const ofTheGateway = ['penstock-environment', 'cache-control', 'cache-status'];

/** The fields that must be the same on both sides, in an order that can be compared: repetitions keep theirs. */
export function carried(fields: readonly Field[]): readonly Field[] {
  return sorted(but([...ofTheConnection, ...ofTheGateway], fields));
}

/** The fields without those of these names, which are given in lower case. */
export const but = (names: readonly string[], fields: readonly Field[]): readonly Field[] =>
  fields.filter(([name]) => !names.includes(name.toLowerCase()));

/** Every value of a field, in order; `name` in any case. */
export const valuesOf = (fields: readonly Field[], name: string): readonly string[] =>
  fields.filter(([field]) => field.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

/** The order between fields of different names means nothing (RFC 9110 section 5.3). */
const sorted = (fields: readonly Field[]) =>
  fields.toSorted(([one], [other]) => one.toLowerCase().localeCompare(other.toLowerCase()));
