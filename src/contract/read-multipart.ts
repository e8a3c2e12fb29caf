/** Splits a body of multipart/form-data (RFC 7578, RFC 2046 section 5.1) into its parts, without copying them. */

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
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) return undefined;
  const delimiter = `\r\n--${boundary}`;
  let at = body.subarray(0, delimiter.length - 2).equals(Buffer.from(delimiter.slice(2)))
    ? delimiter.length - 2
    : afterNext(body, delimiter, 0);
  const parts: Part[] = [];
  while (at !== undefined) {
    if (body.toString('latin1', at, at + 2) === '--') return parts; // the closing delimiter
    if (parts.length === maxParts) return undefined;
    const start = afterNext(body, '\r\n', at);
    const next = start === undefined ? undefined : afterNext(body, delimiter, start - 2);
    if (start === undefined || next === undefined) return undefined;
    const part = partOf(body.subarray(start, Math.max(start, next - delimiter.length)));
    if (!part) return undefined;
    parts.push(part);
    at = next;
  }
  return undefined;
}

function afterNext(body: Buffer, text: string, from: number): number | undefined {
  const at = body.indexOf(text, from, 'latin1');
  return at < 0 ? undefined : at + text.length;
}

function boundaryOf(contentType: string): string | undefined {
  const [, quoted, plain] = /;\s*boundary\s*=\s*(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ?? [];
  return quoted ?? plain;
}

function partOf(bytes: Buffer): Part | undefined {
  const headEnd = bytes.subarray(0, maxHeadBytes).indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  let name = '';
  let contentType: string | undefined;
  for (const line of bytes.toString('latin1', 0, headEnd).split('\r\n')) {
    const colon = line.indexOf(':');
    const field = line.slice(0, Math.max(0, colon)).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (field === 'content-type') contentType = value;
    if (field === 'content-disposition') name = /;\s*name\s*=\s*"?([^";]*)"?/i.exec(value)?.[1] ?? '';
  }
  return { name, contentType, body: bytes.subarray(headEnd + 4) };
}
