/** What a `transactionStatus` says about the future of a payment. */

import { isJson, isXml } from './media-type.ts';

/** The codes of ISO 20022 that 1.3.6 and 1.3.11 know alike (OpenAPI, `transactionStatus`). */
export const transactionStatuses = [
  'RCVD', // received
  'PDNG', // pending, further checks follow
  'PATC', // some but not all of the authentications needed are done
  'ACTC', // authentication and validation successful
  'ACFC', // funds checked as well
  'ACCP', // customer profile checked as well; where a standing order rests
  'ACWC', // accepted with a change, such as another date
  'ACWP', // accepted, not yet posted to the creditor's account
  'ACSP', // accepted for execution
  'PART', // bulk: some accepted, others not
  'ACSC', // settled on the debtor's account
  'ACCC', // settled on the creditor's account
  'RJCT', // rejected
  'CANC', // cancelled before execution
] as const;

/**
 * `final` never changes again; `settled` hardly does (an ACSC may still become ACCC); `pending` may at any
 * time, also without a request: an authorisation that is not finished in time turns a payment into RJCT.
 */
export type Finality = 'final' | 'settled' | 'pending';

/**
 * How final a code is, which depends on the payment service: the standard names no final code, and where a
 * single payment ends, a standing order may go on. Whatever is not known to be final is `pending`.
 */
export function finalityOf(paymentService: string, code: string): Finality {
  const final = finalCodes.get(paymentService);
  if (final?.includes(code)) return 'final';
  return final && code === 'ACSC' ? 'settled' : 'pending';
}

type TransactionStatus = (typeof transactionStatuses)[number];

const finalCodes: ReadonlyMap<string, readonly string[]> = new Map<string, readonly TransactionStatus[]>([
  ['payments', ['RJCT', 'CANC', 'ACCC']],
  ['periodic-payments', ['RJCT', 'CANC']],
  ['bulk-payments', ['RJCT', 'CANC', 'ACCC']],
]);

// MERGED HEADER (rewrite or remove):
/* Reads the transaction status out of the body of a status answer. */

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
