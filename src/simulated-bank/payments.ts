/** All payments of the bank. */
import { randomBytes } from 'node:crypto';
import type { BankClock } from './clock.ts';
import {
  type EmbeddedSteps,
  type PayerDecision,
  type Payment,
  type PaymentAuthorisation,
  type PaymentTimings,
  type ReturnUrls,
  type ScaApproach,
  scaStatusAt,
  statusAt,
} from './payment-lifecycle.ts';
import { type BankProfile, fill } from './profile.ts';

export type AuthorisationType = 'authorisations' | 'cancellation-authorisations';

/** The data of an initiation that the payment keeps. */
type Initiation = Pick<Payment, 'service' | 'product' | 'requestId' | 'contentType' | 'order' | 'returnTo'>;

/** A payment, as tests and the control endpoint see it. */
export interface PaymentView {
  readonly paymentId: string;
  readonly paymentService: string;
  readonly paymentProduct: string;
  /** The X-Request-ID that created it. */
  readonly requestId: string;
  /** Its current status. */
  readonly transactionStatus: string;
  readonly authorisationIds: readonly string[];
  readonly cancellationAuthorisationIds: readonly string[];
  /** How many passwords and TANs of the payer it has checked for this payment. */
  readonly credentialChecks: number;
}

/** The payments of one bank. A repeated X-Request-ID creates a second payment: this bank does not detect duplicates. */
export interface Payments {
  create(order: Initiation): Payment;
  find(service: string, product: string, id: string): Payment | undefined;
  withId(id: string): Payment | undefined;
  /** @param returnTo where the TPP wants the payer back; what it does not name is that of the payment */
  startAuthorisation(
    payment: Payment,
    type: AuthorisationType,
    approach: ScaApproach,
    returnTo?: ReturnUrls,
  ): PaymentAuthorisation;
  /** Stores what a person does on the bank's page. */
  decide(payment: Payment, authorisation: PaymentAuthorisation, decision: PayerDecision): void;
  /** Stores the payment with another state of an embedded authorisation. */
  continueAuthorisation(payment: Payment, authorisation: PaymentAuthorisation, embedded: EmbeddedSteps): void;
  /** Cancels immediately, as long as the payment is not authorised. */
  cancel(payment: Payment): void;
  /** Records that a cancellation was requested, which then needs an authorisation. */
  requestCancellation(payment: Payment): void;
  statusOf(payment: Payment): string;
  scaStatusOf(payment: Payment, authorisation: PaymentAuthorisation): string;
  /** Reports this status from now on; `undefined` returns to the status by time. @returns `false` if there is no such payment */
  force(id: string, status: string | undefined): boolean;
  /** Sets the id of the next payment; several calls queue up. */
  nextId(id: string): void;
  views(): readonly PaymentView[];
  clear(): void;
}

/** @param name prefix of the payment ids, unless the profile has a template for them */
export function createPayments(
  { ids, status, links }: BankProfile,
  name: string,
  clock: BankClock,
  times: PaymentTimings,
): Payments {
  const byId = new Map<string, Payment>();
  const wantedIds: string[] = [];
  const keep = (payment: Payment) => byId.set(payment.id, payment);
  function change(
    payment: Payment,
    authorisation: PaymentAuthorisation,
    changed: Partial<PaymentAuthorisation>,
  ): void {
    const merged = (one: PaymentAuthorisation) => (one === authorisation ? { ...one, ...changed } : one);
    const { authorisations, cancellations } = payment;
    keep({
      ...payment,
      authorisations: authorisations.map(merged),
      cancellations: cancellations.map(merged),
    });
  }
  const statusOf = (payment: Payment) => {
    const now = statusAt(payment, clock.now(), times);
    return now === 'ACCC' && payment.forcedStatus === undefined ? status.last : now;
  };
  const random = () => randomBytes(6).toString('hex');

  return {
    create: (order) => {
      const id = wantedIds.shift() ?? fill(ids.payment ?? `${name}-{random}`, { random: random() });
      const initialPayment = { authorisations: [], cancellations: [], cancellationRequested: false };
      const payment = { ...initialPayment, ...order, id, createdAt: clock.now(), credentialChecks: 0 };
      keep(payment);
      return payment;
    },
    find: (service, product, id) => {
      const payment = byId.get(id);
      return payment?.service === service && [payment.product, links.location.product].includes(product)
        ? payment
        : undefined;
    },
    withId: (id) => byId.get(id),
    startAuthorisation: (payment, type, approach, returnTo) => {
      const id = fill(ids.authorisation, { random: random(), payment: payment.id });
      const isEmbedded = approach === 'EMBEDDED';
      const embedded: EmbeddedSteps = { next: 'password', wrongAttempts: 0 };
      const { ok = payment.returnTo?.ok, nok = payment.returnTo?.nok } = returnTo ?? {};
      const startedAt = clock.now();
      const started = { id, startedAt, approach, returnTo: { ok, nok }, ...(isEmbedded && { embedded }) };
      if (type === 'authorisations')
        keep({ ...payment, authorisations: [...payment.authorisations, started] });
      else keep({ ...payment, cancellations: [...payment.cancellations, started] });
      return started;
    },
    decide: (payment, authorisation, decision) => change(payment, authorisation, { decision }),
    continueAuthorisation: (payment, authorisation, embedded) => change(payment, authorisation, { embedded }),
    cancel: (payment) => keep({ ...payment, cancelledAt: clock.now() }),
    requestCancellation: (payment) => keep({ ...payment, cancellationRequested: true }),
    statusOf,
    scaStatusOf: (payment, authorisation) => scaStatusAt(payment, authorisation, clock.now(), times),
    force: (id, status) => {
      const payment = byId.get(id);
      if (!payment) return false;
      const { forcedStatus: _, ...unforced } = payment;
      keep(status === undefined ? unforced : { ...unforced, forcedStatus: status });
      return true;
    },
    nextId: (id) => {
      wantedIds.push(id);
    },
    views: () => [...byId.values()].map((payment) => viewOf(payment, statusOf(payment))),
    clear: () => byId.clear(),
  };
}

function viewOf(payment: Payment, transactionStatus: string): PaymentView {
  return {
    paymentId: payment.id,
    paymentService: payment.service,
    paymentProduct: payment.product,
    requestId: payment.requestId,
    transactionStatus,
    authorisationIds: payment.authorisations.map(({ id }) => id),
    cancellationAuthorisationIds: payment.cancellations.map(({ id }) => id),
    credentialChecks: payment.credentialChecks,
  };
}
