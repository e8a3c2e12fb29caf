/** What the eight operations have in common: what they are given, and what they work with. */
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { BankError } from './bank-error.ts';
import type { BankResponse } from './bank-response.ts';
import type { Clock } from './clock.ts';
import type { Links } from './links.ts';
import type { Payment, ScaApproach } from './payment-lifecycle.ts';
import type { Payments } from './payments.ts';
import type { BankRoute } from './routes.ts';

/** A request of one of the eight operations, read to its end. */
export interface OperationRequest {
  readonly route: BankRoute;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** One of the eight. @throws Refusal if the bank says no; nothing has happened then */
export type PerformOperation = (call: OperationRequest) => BankResponse;

/** What the operations work with. */
export interface OperationContext {
  readonly payments: Payments;
  readonly links: Links;
  readonly clock: Clock;
}

/** The payment that a route names. @throws Refusal 404 RESOURCE_UNKNOWN */
export function requirePayment(payments: Payments, route: BankRoute): Payment {
  const payment = payments.find(route.service, route.product, route.paymentId);
  if (!payment) throw new BankError(404, 'RESOURCE_UNKNOWN', 'Payment not found');
  return payment;
}

/** How the payer will be asked: in the bank's app if the TPP prefers that, else on the bank's pages. */
export function approachOf(headers: HeaderFields): ScaApproach {
  return isTrue(headers, 'tpp-decoupled-preferred') ? 'DECOUPLED' : 'REDIRECT';
}

/** Whether a preference is set. `name` in lower case. */
export function isTrue(headers: HeaderFields, name: string): boolean {
  return headerValue(headers, name)?.toLowerCase() === 'true';
}
