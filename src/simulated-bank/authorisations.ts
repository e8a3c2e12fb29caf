/** The three operations on authorisations of payments and of cancellations. */

import { BankError } from './bank-error.ts';
import {
  approachOf,
  type OperationContext,
  type OperationRequest,
  type PerformOperation,
  requirePayment,
} from './operation-context.ts';
import { isFinal, type Payment, type PaymentAuthorisation } from './payment-lifecycle.ts';
import type { AuthorisationType } from './payments.ts';
import { jsonResponse, type SimulatedResponse, withHeaders } from './simulated-response.ts';
import { parseObject } from './validate-initiation.ts';

type AuthorisationOperation = 'startAuthorisation' | 'listAuthorisations' | 'getAuthorisation';

/** Creates the operations that start, list and read authorisations. */
export function createAuthorisationOperations(
  context: OperationContext,
): Record<AuthorisationOperation, PerformOperation> {
  return {
    startAuthorisation: (call) => startAuthorisation(context, call),
    listAuthorisations: ({ route }) => {
      const payment = requirePayment(context.payments, route);
      const ids = authorisationsOf(payment, authorisationTypeOf(route.authorisationType)).map(({ id }) => id);
      return jsonResponse(200, { authorisationIds: ids });
    },
    getAuthorisation: ({ route }) => {
      const payment = requirePayment(context.payments, route);
      const all = authorisationsOf(payment, authorisationTypeOf(route.authorisationType));
      const authorisation = all.find(({ id }) => id === route.authorisationId);
      if (!authorisation) throw new BankError(404, 'RESOURCE_UNKNOWN', 'Authorisation not found');
      return jsonResponse(200, { scaStatus: context.payments.scaStatusOf(payment, authorisation) });
    },
  };
}

/**
 * Links of an authorisation: its status, and the bank's page for redirect, or where the TPP sends the payer's password for
 * embedded. Decoupled uses the bank's app, so no further link.
 */
export function authorisationLinks(
  { links, profile }: OperationContext,
  payment: Payment,
  type: AuthorisationType,
  authorisation: PaymentAuthorisation,
): Readonly<Record<string, string>> {
  const scaStatus = links.authorisation(payment, type, authorisation.id);
  switch (authorisation.approach) {
    case 'REDIRECT':
      return { [profile.sca.redirectLink]: links.scaRedirect(authorisation), scaStatus };
    case 'EMBEDDED':
      return { updatePsuAuthentication: scaStatus, scaStatus };
    case 'DECOUPLED':
      return { scaStatus };
  }
}

function startAuthorisation(
  context: OperationContext,
  { route, headers, body }: OperationRequest,
): SimulatedResponse {
  if (body.length > 0) parseObject(body.toString('utf8'));
  const payment = requirePayment(context.payments, route);
  const type = authorisationTypeOf(route.authorisationType);
  requireStartable(payment, type, context.payments.statusOf(payment));

  const approach = approachOf(context.profile, headers);
  const authorisation = context.payments.startAuthorisation(payment, type, approach);
  const psuMessage = { psuMessage: 'Please use your BankApp for transaction Authorisation.' };
  const bankResponse = jsonResponse(201, {
    scaStatus: 'received',
    authorisationId: authorisation.id,
    ...(approach === 'DECOUPLED' && psuMessage),
    _links: context.links.write(authorisationLinks(context, payment, type, authorisation)),
  });
  return withHeaders(bankResponse, [
    ['ASPSP-SCA-Approach', approach],
    ...context.notifications.subscribe(context.payments.withId(payment.id) ?? payment, headers),
  ]);
}

/** Throws 409 unless the payment is RCVD or, for a cancellation, its cancellation was requested and it is not final. */
function requireStartable(payment: Payment, type: AuthorisationType, status: string): void {
  const startable =
    type === 'authorisations' ? status === 'RCVD' : payment.cancellationRequested && !isFinal(status);
  if (startable) return;
  throw new BankError(
    409,
    'STATUS_INVALID',
    `The addressed resource does not allow additional authorisation: it is ${status}`,
  );
}

const authorisationTypeOf = (segment: string): AuthorisationType =>
  segment === 'authorisations' ? 'authorisations' : 'cancellation-authorisations';

const authorisationsOf = (payment: Payment, type: AuthorisationType) =>
  type === 'authorisations' ? payment.authorisations : payment.cancellations;
