/** Validates an initiation as far as the product requires: JSON, pain.001, or both as multipart. */
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { BankError } from './bank-error.ts';

/** @returns the content type under which the bank stores the body. @throws BankError 400 FORMAT_ERROR */
export function validateInitiation(
  service: string,
  product: string,
  headers: HeaderFields,
  body: Buffer,
): string {
  const contentType = headerValue(headers, 'content-type') ?? '';
  const text = body.toString('utf8');
  if (!product.startsWith('pain.001-')) {
    parseObject(text);
    return 'application/json';
  }
  if (service !== 'periodic-payments') {
    validatePain001(text);
    return 'application/xml';
  }
  const parts = parseMultipart(contentType, text);
  validatePain001(parts.get('xml_sct') ?? '');
  parseObject(parts.get('json_standingorderType') ?? '');
  return contentType;
}

/** The object that a JSON text contains. @throws BankError 400 FORMAT_ERROR */
export function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
  }
  throw new BankError(400, 'FORMAT_ERROR', 'The body is not a JSON object');
}

/** Checks the root elements of a pain.001 document, with or without namespace prefixes; its content is not checked. */
function validatePain001(text: string): void {
  const opens = /^\s*(?:<\?xml[^>]*>\s*)?<(?:\w+:)?Document[\s>]/.test(text);
  const closes = /<\/(?:\w+:)?Document\s*>\s*$/.test(text);
  const initiates = /<(?:\w+:)?CstmrCdtTrfInitn[\s>]/.test(text);
  if (opens && initiates && closes) return;
  throw new BankError(400, 'FORMAT_ERROR', 'The body is not a pain.001 document');
}

/** The parts of a multipart/form-data body by name (RFC 7578), as text. */
function parseMultipart(contentType: string, body: string): ReadonlyMap<string, string> {
  const boundary = /boundary="?([^";]+)"?/i.exec(contentType)?.[1];
  if (boundary === undefined || !body.includes(`--${boundary}--`)) {
    throw new BankError(400, 'FORMAT_ERROR', 'The body is not multipart/form-data', { path: 'Content-Type' });
  }
  const parts = body
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => {
      const headEnd = part.indexOf('\r\n\r\n');
      const name = /name="?([^";\r\n]+)"?/i.exec(part.slice(0, headEnd))?.[1] ?? '';
      return [name, part.slice(headEnd + 4, -2)] as const;
    });
  return new Map(parts);
}
