/** Parses DER, the encoding of certificates (ITU-T X.690): the part of it that certificates use. */

/** One value: its identifier octet and its content. */
export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
}

/** Identifier octets (X.690 section 8.1.2; of the strings, X.680 section 41). */
export const tags = {
  objectId: 0x06,
  sequence: 0x30,
  /** `[0]` and `[3]`, explicit: the version and the extensions of a certificate. */
  version: 0xa0,
  extensions: 0xa3,
} as const;

/** Parses consecutive values. @throws RangeError if the bytes are not DER */
export function parseValues(bytes: Buffer): readonly DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes.readUInt8(at);
    if ((tag & 0x1f) === 0x1f) throw new RangeError('certificates contain no tag of several octets');
    const { start, length } = parseLength(bytes, at + 1);
    if (start + length > bytes.length)
      throw new RangeError('a value extends beyond the end of its container');
    values.push({ tag, content: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return values;
}

/** Parses the values of a SEQUENCE. @throws RangeError if the value is not a SEQUENCE, or its content is not DER */
export function parseSequence(value: DerValue | undefined): readonly DerValue[] {
  if (value?.tag !== tags.sequence) throw new RangeError('a SEQUENCE was expected');
  return parseValues(value.content);
}

/** Parses an OBJECT IDENTIFIER. @returns it in dotted form @throws RangeError if the value is not one */
export function parseObjectId(value: DerValue | undefined): string {
  const bytes = value?.tag === tags.objectId ? value.content : Buffer.alloc(0);
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of bytes) {
    arc = arc * 0x80 + (byte & 0x7f);
    if (!Number.isSafeInteger(arc)) throw new RangeError('an object identifier is too large');
    if (byte & 0x80) continue;
    arcs.push(arc);
    arc = 0;
  }
  const [first, ...rest] = arcs;
  if (first === undefined || (bytes.at(-1) ?? 0) & 0x80)
    throw new RangeError('an OBJECT IDENTIFIER was expected');
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - 40 * root, ...rest].join('.');
}

/** Parses a character string of any type. @throws RangeError if the value is not one */
export function parseText(value: DerValue | undefined): string {
  const decode = value && decoders[value.tag];
  if (!decode) throw new RangeError('a character string was expected');
  return decode(value.content);
}

const latin1 = (bytes: Buffer) => bytes.toString('latin1');

const decoders: Readonly<Record<number, (bytes: Buffer) => string>> = {
  12: (bytes) => bytes.toString('utf8'), // UTF8String
  18: latin1, // NumericString
  19: latin1, // PrintableString
  20: latin1, // TeletexString; issuers write Latin-1 in it
  22: latin1, // IA5String
  26: latin1, // VisibleString
  30: (bytes) =>
    Buffer.from(bytes.subarray(0, bytes.length & ~1))
      .swap16()
      .toString('utf16le'), // BMPString
};

/**
 * At most four length octets: no certificate is larger. Accepts a longer form of the length than DER allows (section 10.1),
 * because OpenSSL does.
 */
function parseLength(bytes: Buffer, at: number): { readonly start: number; readonly length: number } {
  const first = bytes[at];
  if (first === undefined) throw new RangeError('a value has no length');
  if (first < 0x80) return { start: at + 1, length: first };
  const octets = first & 0x7f;
  if (octets < 1 || octets > 4 || at + octets >= bytes.length) throw new RangeError('a length is malformed');
  return { start: at + 1 + octets, length: bytes.readUIntBE(at + 1, octets) };
}
