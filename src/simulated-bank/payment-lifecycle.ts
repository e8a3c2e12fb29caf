/** What becomes of a payment with time: its status and that of its authorisations, as functions of the clock. */

/** When things happen to a payment that nobody disturbs; all in milliseconds. */
export interface PaymentTimings {
  /** From the start of an authorisation until the payer has finished it: RCVD becomes ACTC. */
  readonly authorisedAfterMs: number;
  /** From then on until the bank executes: ACSP, or ACCP where a standing order comes to rest. */
  readonly executedAfterMs: number;
  /** From the authorisation until the debtor's account is settled: ACSC, or at once ACCC for instant payments. */
  readonly settledAfterMs: number;
  /** From the authorisation until the money has arrived: ACCC. */
  readonly creditedAfterMs: number;
  /** From the initiation until a payment that nobody authorised is given up: RJCT. */
  readonly abandonedAfterMs: number;
}

/** Quick enough to watch, slow enough to poll. */
export const defaultTimings: PaymentTimings = {
  authorisedAfterMs: 5_000,
  executedAfterMs: 5_000,
  settledAfterMs: 15_000,
  creditedAfterMs: 60_000,
  abandonedAfterMs: 900_000,
};

export type ScaApproach = 'REDIRECT' | 'DECOUPLED';

/** One attempt of the payer to agree to a payment, or to its cancellation. */
export interface PaymentAuthorisation {
  readonly id: string;
  readonly startedAt: number;
  readonly approach: ScaApproach;
}

/** A payment as the bank remembers it. Its status is not kept but follows from these facts and the clock. */
export interface Payment {
  readonly id: string;
  readonly service: string;
  readonly product: string;
  /** The X-Request-ID of the call that created it. */
  readonly requestId: string;
  readonly createdAt: number;
  /** What was ordered, as it came. */
  readonly contentType: string;
  readonly order: Buffer;
  readonly authorisations: readonly PaymentAuthorisation[];
  readonly cancellations: readonly PaymentAuthorisation[];
  /** Somebody asked to cancel it after it was authorised; a cancellation authorisation may be started. */
  readonly cancellationAsked: boolean;
  /** When it was cancelled without an authorisation. */
  readonly cancelledAt?: number;
  /** A status the bank was told to report from now on, whatever the clock says. */
  readonly forcedStatus?: string;
}

/** The transaction status at a moment. Usually one of the fourteen codes; a forced one may be anything. */
export function statusAt(payment: Payment, now: number, times: PaymentTimings): string {
  if (payment.forcedStatus !== undefined) return payment.forcedStatus;

  const authorisedAt = earliestEnd(payment.authorisations, times);
  const settledAt = payment.service === 'periodic-payments' ? Infinity : authorisedAt + times.settledAfterMs;
  const cancelledAt = payment.cancelledAt ?? earliestEnd(payment.cancellations, times);
  if (cancelledAt <= now && cancelledAt < settledAt) return 'CANC';

  const abandonedAt = payment.createdAt + times.abandonedAfterMs;
  if (abandonedAt <= now && abandonedAt < authorisedAt) return 'RJCT';

  if (now < authorisedAt) return 'RCVD';
  if (now < authorisedAt + times.executedAfterMs) return 'ACTC';
  if (payment.service === 'periodic-payments') return 'ACCP';
  if (now < settledAt) return 'ACSP';
  if (payment.product.includes('instant')) return 'ACCC';
  return now < authorisedAt + times.creditedAfterMs ? 'ACSC' : 'ACCC';
}

/** The status of an authorisation of the payment: received, psuAuthenticated, and in the end finalised or failed. */
export function scaStatusAt(
  payment: Payment,
  asked: PaymentAuthorisation,
  now: number,
  times: PaymentTimings,
): string {
  const endsAt = asked.startedAt + times.authorisedAfterMs;
  const paymentThen = statusAt(payment, Math.min(now, endsAt), times);

  if (payment.cancellations.includes(asked)) {
    if (now >= endsAt) return paymentThen === 'CANC' ? 'finalised' : 'failed';
  } else {
    if (paymentThen === 'CANC' || paymentThen === 'RJCT') return 'failed';
    if (now >= endsAt) return 'finalised';
  }
  return now < asked.startedAt + times.authorisedAfterMs / 2 ? 'received' : 'psuAuthenticated';
}

/** Nothing can happen any more to a payment in one of these. */
export const isFinal = (status: string) => ['ACSC', 'ACCC', 'RJCT', 'CANC'].includes(status);

function earliestEnd(authorisations: readonly PaymentAuthorisation[], times: PaymentTimings): number {
  return Math.min(...authorisations.map((one) => one.startedAt + times.authorisedAfterMs));
}
