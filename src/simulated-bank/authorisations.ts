/** The three operations on authorisations, of payments and of their cancellation alike. */
import { type Answer, jsonAnswer, withHeaders } from './answers.ts';
import { approachOf, type Call, type Desk, foundPayment, type Perform } from './desk.ts';
import { parseObject } from './order.ts';
import { type Authorisation, isOver, type Payment } from './payment-life.ts';
import type { AuthorisationType } from './payments.ts';
import { Refusal } from './refusal.ts';

type AuthorisationOperation = 'startAuthorisation' | 'listAuthorisations' | 'getAuthorisation';

/** Starting, listing and reading authorisations. */
export function createAuthorisationOperations(desk: Desk): Record<AuthorisationOperation, Perform> {
  return {
    startAuthorisation: (call) => startAuthorisation(desk, call),
    listAuthorisations: ({ route }) => {
      const payment = foundPayment(desk.payments, route);
      const ids = authorisationsOf(payment, typeOf(route.authorisationType)).map(({ id }) => id);
      return jsonAnswer(200, { authorisationIds: ids });
    },
    getAuthorisation: ({ route }) => {
      const payment = foundPayment(desk.payments, route);
      const all = authorisationsOf(payment, typeOf(route.authorisationType));
      const authorisation = all.find(({ id }) => id === route.authorisationId);
      if (!authorisation) throw new Refusal(404, 'RESOURCE_UNKNOWN', 'Authorisation not found');
      return jsonAnswer(200, { scaStatus: desk.payments.scaStatusOf(payment, authorisation) });
    },
  };
}

/** What a TPP follows to have the payer authorise: a page of the bank's, unless the bank's app asks by itself. */
export function authorisationLinks(
  { links }: Desk,
  payment: Payment,
  type: AuthorisationType,
  { id, approach }: Authorisation,
): Record<string, { readonly href: string }> {
  const scaStatus = { href: links.authorisation(payment, type, id) };
  return approach === 'DECOUPLED'
    ? { scaStatus }
    : { scaRedirect: { href: links.scaRedirect(id) }, scaStatus };
}

function startAuthorisation(desk: Desk, { route, headers, body }: Call): Answer {
  if (body.length > 0) parseObject(body.toString('utf8'));
  const payment = foundPayment(desk.payments, route);
  const type = typeOf(route.authorisationType);
  checkStartable(payment, type, desk.payments.statusOf(payment));

  const approach = approachOf(headers);
  const authorisation = desk.payments.startAuthorisation(payment, type, approach);
  const psuMessage = { psuMessage: 'Please use your BankApp for transaction Authorisation.' };
  const answer = jsonAnswer(201, {
    scaStatus: 'received',
    authorisationId: authorisation.id,
    ...(approach === 'DECOUPLED' && psuMessage),
    _links: authorisationLinks(desk, payment, type, authorisation),
  });
  return withHeaders(answer, [['ASPSP-SCA-Approach', approach]]);
}

/** A payment is authorised until it is; its cancellation once that was asked for and as long as anything can be stopped. */
function checkStartable(payment: Payment, type: AuthorisationType, status: string): void {
  const startable =
    type === 'authorisations' ? status === 'RCVD' : payment.cancellationAsked && !isOver(status);
  if (startable) return;
  throw new Refusal(
    409,
    'STATUS_INVALID',
    `The addressed resource does not allow additional authorisation: it is ${status}`,
  );
}

const typeOf = (segment: string): AuthorisationType =>
  segment === 'authorisations' ? 'authorisations' : 'cancellation-authorisations';

const authorisationsOf = (payment: Payment, type: AuthorisationType) =>
  type === 'authorisations' ? payment.authorisations : payment.cancellations;
