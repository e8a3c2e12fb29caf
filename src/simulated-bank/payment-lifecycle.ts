/** The status of a payment and of its authorisations, as functions of the clock. */

/** The times of a payment's status changes, in milliseconds. */
export interface PaymentTimings {
  /** From the start of an authorisation until the payer has finished it: RCVD becomes ACTC. */
  readonly authorisedAfterMs: number;
  /** From the authorisation until the bank executes: ACSP, or ACCP as the last status of a standing order. */
  readonly executedAfterMs: number;
  /** From the authorisation until the debtor's account is settled: ACSC, or immediately ACCC for instant payments. */
  readonly settledAfterMs: number;
  /** From the authorisation until the money has arrived: ACCC. */
  readonly creditedAfterMs: number;
  /** From the initiation until a payment without authorisation is rejected: RJCT. */
  readonly abandonedAfterMs: number;
}

/** Fast enough for a demo, slow enough for polling. */
export const defaultTimings: PaymentTimings = {
  authorisedAfterMs: 5_000,
  executedAfterMs: 5_000,
  settledAfterMs: 15_000,
  creditedAfterMs: 60_000,
  abandonedAfterMs: 900_000,
};

export type ScaApproach = 'REDIRECT' | 'DECOUPLED' | 'EMBEDDED';

/** One attempt of the payer to authorise a payment or its cancellation. */
export interface PaymentAuthorisation {
  readonly id: string;
  readonly startedAt: number;
  readonly approach: ScaApproach;
  /** Of the embedded approach, which ends with the right TAN; the others end by time, or by a decision. */
  readonly embedded?: EmbeddedSteps;
  /** Absent: the payer approves by itself after `authorisedAfterMs`. */
  readonly decision?: PayerDecision;
  readonly returnTo?: ReturnUrls;
}

/** What a person does on the bank's page; while the page is `open`, the authorisation does not end by time. */
export type PayerDecision =
  | { readonly kind: 'open' }
  | { readonly kind: 'approved' | 'rejected'; readonly at: number };

/** Where the TPP wants the payer back: TPP-Redirect-URI and TPP-Nok-Redirect-URI. Not validated. */
export interface ReturnUrls {
  readonly ok: string | undefined;
  readonly nok: string | undefined;
}

/** How far the payer's data has arrived, in an authorisation with the embedded approach. */
export interface EmbeddedSteps {
  readonly next: 'password' | 'method' | 'tan' | 'nothing';
  readonly wrongAttempts: number;
  readonly finishedAt?: number;
}

/** After this many wrong passwords or TANs, an authorisation takes no more. */
const allowedAttempts = 3;

export const isBlocked = ({ embedded }: PaymentAuthorisation) =>
  embedded !== undefined && embedded.wrongAttempts >= allowedAttempts;

/** A payment as the bank stores it. Its status is not stored: it is derived from these facts and the clock. */
export interface Payment {
  readonly id: string;
  readonly service: string;
  readonly product: string;
  /** The X-Request-ID of the call that created it. */
  readonly requestId: string;
  readonly createdAt: number;
  /** The initiation's body, unchanged. */
  readonly contentType: string;
  readonly order: Buffer;
  readonly returnTo?: ReturnUrls;
  readonly authorisations: readonly PaymentAuthorisation[];
  readonly cancellations: readonly PaymentAuthorisation[];
  /** A cancellation was requested after the authorisation; a cancellation authorisation may be started. */
  readonly cancellationRequested: boolean;
  /** How many passwords and TANs of the payer the bank has checked. */
  readonly credentialChecks: number;
  /** When it was cancelled without an authorisation. */
  readonly cancelledAt?: number;
  /** A forced status, reported in place of the status by time. */
  readonly forcedStatus?: string;
}

/** The transaction status at a moment: usually one of the fourteen codes; a forced one may be any string. */
export function statusAt(payment: Payment, now: number, times: PaymentTimings): string {
  if (payment.forcedStatus !== undefined) return payment.forcedStatus;

  const authorisedAt = earliestEnd(payment.authorisations, times);
  const settledAt = payment.service === 'periodic-payments' ? Infinity : authorisedAt + times.settledAfterMs;
  const cancelledAt = payment.cancelledAt ?? earliestEnd(payment.cancellations, times);
  if (cancelledAt <= now && cancelledAt < settledAt) return 'CANC';

  const rejectedAt = Math.min(...payment.authorisations.map(rejectionOf));
  if (rejectedAt <= now && rejectedAt < authorisedAt) return 'RJCT';

  const abandonedAt = payment.createdAt + times.abandonedAfterMs;
  if (abandonedAt <= now && abandonedAt < authorisedAt) return 'RJCT';

  if (now < authorisedAt) return 'RCVD';
  if (now < authorisedAt + times.executedAfterMs) return 'ACTC';
  if (payment.service === 'periodic-payments') return 'ACCP';
  if (now < settledAt) return 'ACSP';
  if (payment.product.includes('instant')) return 'ACCC';
  return now < authorisedAt + times.creditedAfterMs ? 'ACSC' : 'ACCC';
}

/** The status of an authorisation of the payment: received, psuAuthenticated, scaMethodSelected (embedded), and finally finalised or failed. */
export function scaStatusAt(
  payment: Payment,
  authorisation: PaymentAuthorisation,
  now: number,
  times: PaymentTimings,
): string {
  if (isBlocked(authorisation) || rejectionOf(authorisation) <= now) return 'failed';
  const endsAt = endOf(authorisation, times);
  const paymentThen = statusAt(payment, Math.min(now, endsAt), times);

  if (payment.cancellations.includes(authorisation)) {
    if (now >= endsAt) return paymentThen === 'CANC' ? 'finalised' : 'failed';
  } else {
    if (paymentThen === 'CANC' || paymentThen === 'RJCT') return 'failed';
    if (now >= endsAt) return 'finalised';
  }
  if (authorisation.embedded) return statusBefore[authorisation.embedded.next];
  return now < authorisation.startedAt + times.authorisedAfterMs / 2 ? 'received' : 'psuAuthenticated';
}

const statusBefore = {
  password: 'received',
  method: 'psuAuthenticated',
  tan: 'scaMethodSelected',
  nothing: 'finalised',
} as const;

/** Whether this status never changes. */
export const isFinal = (status: string) => ['ACSC', 'ACCC', 'RJCT', 'CANC'].includes(status);

function earliestEnd(authorisations: readonly PaymentAuthorisation[], times: PaymentTimings): number {
  return Math.min(...authorisations.map((one) => endOf(one, times)));
}

function endOf({ startedAt, embedded, decision }: PaymentAuthorisation, times: PaymentTimings): number {
  if (embedded) return embedded.finishedAt ?? Infinity;
  if (decision) return decision.kind === 'approved' ? decision.at : Infinity;
  return startedAt + times.authorisedAfterMs;
}

const rejectionOf = ({ decision }: PaymentAuthorisation) =>
  decision?.kind === 'rejected' ? decision.at : Infinity;
