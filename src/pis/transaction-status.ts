/** The transaction status of a payment: how to find it in a response body, and whether it can still change. */

import { isJson, isXml } from './media-type.ts';

/** The codes of ISO 20022 that both 1.3.6 and 1.3.11 define (OpenAPI, `transactionStatus`). */
export const transactionStatuses = [
  'RCVD', // received
  'PDNG', // pending, further checks follow
  'PATC', // some but not all of the required authentications are done
  'ACTC', // authentication and validation successful
  'ACFC', // funds checked as well
  'ACCP', // customer profile checked as well; a standing order stays in this status
  'ACWC', // accepted with a change, such as another date
  'ACWP', // accepted, not yet posted to the creditor's account
  'ACSP', // accepted for execution
  'PART', // bulk: some accepted, others not
  'ACSC', // settled on the debtor's account
  'ACCC', // settled on the creditor's account
  'RJCT', // rejected
  'CANC', // cancelled before execution
] as const;

type TransactionStatus = (typeof transactionStatuses)[number];

/**
 * `final` never changes; `settled` hardly ever does (an ACSC may still become ACCC); `pending` may change at any time, also
 * without a request: an authorisation that is not completed in time turns a payment into RJCT.
 */
export type Finality = 'final' | 'settled' | 'pending';

/**
 * The standard names no final code. The answer depends on the payment service: a status that ends a single payment may
 * not end a standing order. Codes and services that are not known count as `pending`.
 */
export function finalityOf(paymentService: string, code: string): Finality {
  const final = finalCodes.get(paymentService);
  if (final?.includes(code)) return 'final';
  return final && code === 'ACSC' ? 'settled' : 'pending';
}

const finalCodes: ReadonlyMap<string, readonly string[]> = new Map<string, readonly TransactionStatus[]>([
  ['payments', ['RJCT', 'CANC', 'ACCC']],
  ['periodic-payments', ['RJCT', 'CANC']],
  ['bulk-payments', ['RJCT', 'CANC', 'ACCC']],
]);

/**
 * The status in the body of a response: `transactionStatus` of JSON, whether or not it is a code of ISO 20022, or `GrpSts` of
 * pain.002.
 *
 * @returns `undefined` in any doubt: another format, a body that is compressed or broken, several codes
 */
export function transactionStatusIn(body: Buffer, contentType: string | undefined): string | undefined {
  if (isXml(contentType)) return inXml(body);
  return isJson(contentType) ? inJson(body, 'transactionStatus') : undefined;
}

/** The `scaStatus` in the body of a response in JSON. */
export function scaStatusIn(body: Buffer, contentType: string | undefined): string | undefined {
  return isJson(contentType) ? inJson(body, 'scaStatus') : undefined;
}

/** The values of `scaStatus` after which an authorisation does not change any more (OpenAPI 1.3.6 and 1.3.11). */
export const endsAuthorisation = (scaStatus: string): boolean =>
  scaStatus === 'finalised' || scaStatus === 'failed' || scaStatus === 'exempted';

function inJson(body: Buffer, name: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString());
    if (typeof parsed !== 'object' || parsed === null) return undefined;
    const value: unknown = Object.getOwnPropertyDescriptor(parsed, name)?.value;
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

const groupStatus = /<(?:[\w.-]+:)?GrpSts(?:\s[^<>]*)?>\s*([A-Z0-9]{1,4})\s*<\//g;

/** Scans the bytes instead of parsing them. Comments, CDATA and DTDs could hide a code from the scan, so they end it. */
function inXml(body: Buffer): string | undefined {
  const text = body.toString('latin1');
  if (text.includes('<!')) return undefined;
  const codes = new Set(Array.from(text.matchAll(groupStatus), ([, code]) => code));
  const [code] = codes;
  return codes.size === 1 ? code : undefined;
}
