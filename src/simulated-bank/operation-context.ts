/** The inputs that all eight operations share, and helpers for them. */
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { BankError } from './bank-error.ts';
import type { BankClock } from './clock.ts';
import type { Links } from './links.ts';
import type { Notifications } from './notifications.ts';
import type { Payment, ReturnUrls, ScaApproach } from './payment-lifecycle.ts';
import type { Payments } from './payments.ts';
import type { BankProfile } from './profile.ts';
import type { BankRoute } from './routes.ts';
import type { SimulatedResponse } from './simulated-response.ts';

/** A completely read request of one of the eight operations. */
export interface OperationRequest {
  readonly route: BankRoute;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** One of the eight operations. @throws BankError if the bank refuses; nothing has been executed then */
export type PerformOperation = (call: OperationRequest) => SimulatedResponse;

/** The parts of one bank that the operations use. */
export interface OperationContext {
  readonly profile: BankProfile;
  readonly payments: Payments;
  readonly links: Links;
  readonly clock: BankClock;
  readonly notifications: Pick<Notifications, 'subscribe'>;
  /** The bank's own page for an authorisation; `undefined` if `scaRedirect` leads elsewhere. */
  approvalUrl(payment: Pick<Payment, 'id'>, authorisationId: string): string | undefined;
}

/** The payment that a route names. @throws BankError 404 RESOURCE_UNKNOWN */
export function requirePayment(payments: Payments, route: BankRoute): Payment {
  const payment = payments.find(route.service, route.product, route.paymentId);
  if (!payment) throw new BankError(404, 'RESOURCE_UNKNOWN', 'Payment not found');
  return payment;
}

/** The SCA approach: the one that the TPP prefers, if the bank offers it; otherwise the bank's first one. */
export function approachOf({ sca: { approaches } }: BankProfile, headers: HeaderFields): ScaApproach {
  const [first] = approaches;
  const preferred = approaches.find((approach) => isTrue(headers, `tpp-${approach}-preferred`));
  return approachNames[preferred ?? first ?? 'redirect'];
}

/** Where the TPP wants the payer back. */
export const returnUrlsIn = (headers: HeaderFields): ReturnUrls => ({
  ok: headerValue(headers, 'tpp-redirect-uri'),
  nok: headerValue(headers, 'tpp-nok-redirect-uri'),
});

const approachNames = { redirect: 'REDIRECT', decoupled: 'DECOUPLED', embedded: 'EMBEDDED' } as const;

/** Whether a preference header is `true`. @param name in lower case */
export function isTrue(headers: HeaderFields, name: string): boolean {
  return headerValue(headers, name)?.toLowerCase() === 'true';
}
