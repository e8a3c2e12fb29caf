/** Header fields on both sides of the gateway, compared without the gateway's own helpers. */

export type Field = readonly [name: string, value: string];

/** What belongs to one connection, or is made by whoever sends: it may differ between two sides. */
const ofTheConnection = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host', 'date'];

/** What the gateway itself says in every answer, or in that to a status read. */
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
