/** The statuses of payments and authorisations, and whether they can still change. */

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

/** What has become of a payment, for people: `pending` also for codes that are not known. */
export type PaymentOutcome = 'executed' | 'rejected' | 'cancelled' | 'pending';

const outcomes: Readonly<Record<string, PaymentOutcome>> = {
  ACSC: 'executed', // a standing order: at least once
  ACCC: 'executed',
  RJCT: 'rejected',
  CANC: 'cancelled',
} satisfies Partial<Record<TransactionStatus, PaymentOutcome>>;

export const outcomeOf = (code: string): PaymentOutcome => outcomes[code] ?? 'pending';

/** The values of `scaStatus` after which an authorisation does not change any more (OpenAPI 1.3.6 and 1.3.11). */
export const endsAuthorisation = (scaStatus: string): boolean =>
  scaStatus === 'finalised' || scaStatus === 'failed' || scaStatus === 'exempted';
