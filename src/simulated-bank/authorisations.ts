/** The three operations on authorisations of payments and of cancellations. */

import { BankError } from './bank-error.ts';
import { type BankResponse, jsonResponse, withHeaders } from './bank-response.ts';
import {
  approachOf,
  type OperationContext,
  type OperationRequest,
  type PerformOperation,
  requirePayment,
} from './operation-context.ts';
import { isFinal, type Payment, type PaymentAuthorisation } from './payment-lifecycle.ts';
import type { AuthorisationType } from './payments.ts';
import { parseObject } from './validate-initiation.ts';

type AuthorisationOperation = 'startAuthorisation' | 'listAuthorisations' | 'getAuthorisation';

/** Starting, listing and reading authorisations. */
export function createAuthorisationOperations(
  desk: OperationContext,
): Record<AuthorisationOperation, PerformOperation> {
  return {
    startAuthorisation: (call) => startAuthorisation(desk, call),
    listAuthorisations: ({ route }) => {
      const payment = requirePayment(desk.payments, route);
      const ids = authorisationsOf(payment, typeOf(route.authorisationType)).map(({ id }) => id);
      return jsonResponse(200, { authorisationIds: ids });
    },
    getAuthorisation: ({ route }) => {
      const payment = requirePayment(desk.payments, route);
      const all = authorisationsOf(payment, typeOf(route.authorisationType));
      const authorisation = all.find(({ id }) => id === route.authorisationId);
      if (!authorisation) throw new BankError(404, 'RESOURCE_UNKNOWN', 'Authorisation not found');
      return jsonResponse(200, { scaStatus: desk.payments.scaStatusOf(payment, authorisation) });
    },
  };
}

/** Links for the payer's authorisation: a page of the bank (redirect), or none if the bank's app asks (decoupled). */
export function authorisationLinks(
  { links }: OperationContext,
  payment: Payment,
  type: AuthorisationType,
  { id, approach }: PaymentAuthorisation,
): Record<string, { readonly href: string }> {
  const scaStatus = { href: links.authorisation(payment, type, id) };
  return approach === 'DECOUPLED'
    ? { scaStatus }
    : { scaRedirect: { href: links.scaRedirect(id) }, scaStatus };
}

function startAuthorisation(
  desk: OperationContext,
  { route, headers, body }: OperationRequest,
): BankResponse {
  if (body.length > 0) parseObject(body.toString('utf8'));
  const payment = requirePayment(desk.payments, route);
  const type = typeOf(route.authorisationType);
  checkStartable(payment, type, desk.payments.statusOf(payment));

  const approach = approachOf(headers);
  const authorisation = desk.payments.startAuthorisation(payment, type, approach);
  const psuMessage = { psuMessage: 'Please use your BankApp for transaction Authorisation.' };
  const bankResponse = jsonResponse(201, {
    scaStatus: 'received',
    authorisationId: authorisation.id,
    ...(approach === 'DECOUPLED' && psuMessage),
    _links: authorisationLinks(desk, payment, type, authorisation),
  });
  return withHeaders(bankResponse, [['ASPSP-SCA-Approach', approach]]);
}

/** A payment can be authorised until it is; its cancellation after it was requested and while it can still be stopped. */
function checkStartable(payment: Payment, type: AuthorisationType, status: string): void {
  const startable =
    type === 'authorisations' ? status === 'RCVD' : payment.cancellationAsked && !isFinal(status);
  if (startable) return;
  throw new BankError(
    409,
    'STATUS_INVALID',
    `The addressed resource does not allow additional authorisation: it is ${status}`,
  );
}

const typeOf = (segment: string): AuthorisationType =>
  segment === 'authorisations' ? 'authorisations' : 'cancellation-authorisations';

const authorisationsOf = (payment: Payment, type: AuthorisationType) =>
  type === 'authorisations' ? payment.authorisations : payment.cancellations;
