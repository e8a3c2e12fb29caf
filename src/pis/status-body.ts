/** Reads the transaction status out of the body of a status answer. */

import { isJson, isXml } from './media-type.ts';

/**
 * The code in a status answer: `transactionStatus` of JSON, `GrpSts` of pain.002.
 *
 * It decides only how long an answer may be kept, so doubt means `undefined`: another format, a body that is
 * compressed or broken, several codes, or anything longer than the codes of ISO 20022 (1 to 4 characters).
 */
export function transactionStatusIn(body: Buffer, contentType: string | undefined): string | undefined {
  const found = isJson(contentType) ? inJson(body) : isXml(contentType) ? inXml(body) : undefined;
  return typeof found === 'string' && isoCode.test(found) ? found : undefined;
}

const isoCode = /^[A-Z0-9]{1,4}$/;

function inJson(body: Buffer): unknown {
  try {
    const answer: unknown = JSON.parse(body.toString());
    return typeof answer === 'object' && answer !== null && 'transactionStatus' in answer
      ? answer.transactionStatus
      : undefined;
  } catch {
    return undefined;
  }
}

const groupStatus = /<(?:[\w.-]+:)?GrpSts(?:\s[^<>]*)?>\s*([A-Z0-9]{1,4})\s*<\//g;

/** Scans the bytes instead of parsing: comments, CDATA and DTDs could deceive that, so they end it. */
function inXml(body: Buffer): string | undefined {
  const text = body.toString('latin1');
  if (text.includes('<!')) return undefined;
  const codes = new Set(Array.from(text.matchAll(groupStatus), ([, code]) => code));
  const [code] = codes;
  return codes.size === 1 ? code : undefined;
}
