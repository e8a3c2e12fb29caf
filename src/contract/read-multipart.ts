/**
 * Splits a body of multipart/form-data (RFC 7578, RFC 2046 section 5.1) into its parts, without copying them. Strict: what another
 * reader could split or name differently is malformed, so that the bank cannot read other parts than those that were checked.
 */

export interface Part {
  /** Empty if it has none. */
  readonly name: string;
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

/** The body of a periodic payment has two parts. */
const maxParts = 16;
const maxHeadBytes = 4_096;

/** @returns `undefined` if there is no boundary, or if the body does not follow it */
export function readMultipart(contentType: string, body: Buffer): readonly Part[] | undefined {
  const boundary = readParameters(contentType)?.get('boundary') ?? '';
  if (boundary === '' || boundary.length > 70) return undefined;
  const parts: Part[] = [];
  let delimiter = findDelimiter(body, boundary, 0);
  while (delimiter && !delimiter.isLast) {
    if (parts.length === maxParts) return undefined;
    const next = findDelimiter(body, boundary, delimiter.end - 2); // an empty part has only the line break of the delimiter
    const part = next && readPart(body.subarray(delimiter.end, Math.max(delimiter.end, next.start)));
    if (!part) return undefined;
    parts.push(part);
    delimiter = next;
  }
  return delimiter && parts;
}

interface Delimiter {
  /** Of the line break before it, which belongs to it. */
  readonly start: number;
  /** Behind the line break after it. */
  readonly end: number;
  readonly isLast: boolean;
}

/** A delimiter is a line of its own; a line that only begins like one is content. */
function findDelimiter(body: Buffer, boundary: string, from: number): Delimiter | undefined {
  const text = `--${boundary}`;
  for (let at = body.indexOf(text, from, 'latin1'); at >= 0; at = body.indexOf(text, at + 1, 'latin1')) {
    const isAtLineStart = at === 0 || (at - 2 >= from && body.toString('latin1', at - 2, at) === '\r\n');
    if (!isAtLineStart) continue;
    let end = at + text.length;
    const isLast = body.toString('latin1', end, end + 2) === '--';
    if (isLast) end += 2;
    while (body[end] === 0x20 || body[end] === 0x09) end++;
    const isLineEnd = body.toString('latin1', end, end + 2) === '\r\n';
    if (isLineEnd || (isLast && end === body.length)) return { start: at - 2, end: end + 2, isLast };
  }
  return undefined;
}

/** @returns `undefined` if it has no head, or fields that can be read in two ways */
function readPart(bytes: Buffer): Part | undefined {
  const headEnd = bytes.subarray(0, maxHeadBytes).indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const fields = new Map<string, string>();
  const head = bytes.toString('latin1', 0, headEnd).replaceAll(/\r\n[ \t]+/g, ' '); // folded lines
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':');
    const field = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!/^[a-z0-9-]+$/.test(field) || fields.has(field)) return undefined;
    fields.set(field, line.slice(colon + 1).trim());
  }
  const parameters = readParameters(fields.get('content-disposition') ?? '');
  if (!parameters || parameters.has('name*')) return undefined;
  const name = parameters.get('name') ?? '';
  return { name, contentType: fields.get('content-type'), body: bytes.subarray(headEnd + 4) };
}

/** The parameters of a value such as `form-data; name="a"`; `undefined` if one is repeated or malformed. */
function readParameters(value: string): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>();
  const parameter = /\s*;\s*(?:([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*)))?/y;
  const text = value.trimEnd();
  parameter.lastIndex = text.split(';', 1)[0]?.length ?? 0;
  while (parameter.lastIndex < text.length) {
    const found = parameter.exec(text);
    if (!found) return undefined;
    const [, name, quoted, plain = ''] = found;
    if (name === undefined) continue;
    if (parameters.has(name.toLowerCase())) return undefined;
    parameters.set(name.toLowerCase(), quoted ?? plain);
  }
  return parameters;
}
