/** Header fields as they stand on the wire: order, case and repetitions are kept. */

/** A name, in the case in which it was written, and a value. */
export type HeaderField = readonly [name: string, value: string];
/** All fields of a message, in the order in which they were written. */
export type HeaderFields = readonly HeaderField[];

/** Fields that concern one connection only and never travel on (RFC 9110 section 7.6.1, and what is left of older ones). */
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

/** Most names differ in their length: what is looked up some fifty times a request need not be put in lower case. */
const isNamed = (field: string, name: string) => field.length === name.length && lowerCase(field) === name;

/** The names that messages came with, in lower case: nearly all are those of a few programs, over and over. */
const lowerCaseNames = new Map<string, string>();
const maxCachedNames = 1_000;
const maxCachedNameLength = 64;

/** A field's name in lower case. */
export function lowerCase(name: string): string {
  const known = lowerCaseNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  if (lowerCaseNames.size < maxCachedNames && name.length <= maxCachedNameLength)
    lowerCaseNames.set(name, lower);
  return lower;
}

/** The fields but those named, in lower case. */
export function withoutFields(fields: HeaderFields, names: ReadonlySet<string>): HeaderFields {
  return fields.filter(([field]) => !names.has(lowerCase(field)));
}

/** The fields with every one of that name replaced by a single one. */
export function withField(fields: HeaderFields, [name, value]: HeaderField): HeaderFields {
  return [...withoutFields(fields, new Set([lowerCase(name)])), [name, value]];
}

/** The fields that travel on: neither hop-by-hop nor named by `Connection` (RFC 9110 section 7.6.1). */
export function endToEndFields(fields: HeaderFields): HeaderFields {
  const named = connectionOptions(fields);
  return fields.filter(([field]) => {
    const name = lowerCase(field);
    return !hopByHop.has(name) && !named.includes(name);
  });
}

/** What `Connection` names, in lower case. */
export function connectionOptions(fields: HeaderFields): readonly string[] {
  return listMembers(fields, 'connection');
}

/** The members of a field that is a list of tokens, in lower case and in order (RFC 9110 section 5.6.1). `name` in lower case. */
export function listMembers(fields: HeaderFields, name: string): readonly string[] {
  const values = headerValues(fields, name);
  if (values.length === 0) return values; // as it is with nearly every field that is asked for
  return values
    .flatMap((value) => value.split(','))
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== '');
}

/** The pairs of Node's flat `rawHeaders`. */
export function headerFieldsFrom(rawHeaders: readonly string[]): HeaderFields {
  const fields: HeaderField[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    fields.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  return fields;
}
