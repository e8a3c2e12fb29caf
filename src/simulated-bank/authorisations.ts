/** The operations on authorisations of payments and of cancellations, and the PUT on a payment, which can start one. */

import { BankError } from './bank-error.ts';
import { hasStep, linkOfStep, type StepAnswer, takeStep } from './embedded-sca.ts';
import {
  approachOf,
  type OperationContext,
  type OperationRequest,
  type PerformOperation,
  requirePayment,
  returnUrlsIn,
} from './operation-context.ts';
import { isFinal, type Payment, type PaymentAuthorisation } from './payment-lifecycle.ts';
import type { AuthorisationType } from './payments.ts';
import { startsByUpdate } from './profile.ts';
import { jsonResponse, type SimulatedResponse, withHeaders } from './simulated-response.ts';
import { parseObject } from './validate-initiation.ts';

type AuthorisationOperation =
  | 'startAuthorisation'
  | 'listAuthorisations'
  | 'getAuthorisation'
  | 'updatePsuData'
  | 'updatePayment';

/** Creates the operations that start, list, read and continue authorisations. */
export function createAuthorisationOperations(
  context: OperationContext,
): Record<AuthorisationOperation, PerformOperation> {
  return {
    startAuthorisation: (call) =>
      start(context, call, authorisationTypeOf(call.route.authorisationType), 201),
    listAuthorisations: ({ route }) => {
      const payment = requirePayment(context.payments, route);
      const ids = authorisationsOf(payment, authorisationTypeOf(route.authorisationType)).map(({ id }) => id);
      return jsonResponse(200, { authorisationIds: ids });
    },
    getAuthorisation: ({ route }) => {
      const payment = requirePayment(context.payments, route);
      const type = authorisationTypeOf(route.authorisationType);
      const authorisation = requireAuthorisation(payment, type, route.authorisationId);
      return jsonResponse(200, { scaStatus: context.payments.scaStatusOf(payment, authorisation) });
    },
    updatePsuData: (call) => updatePsuData(context, call),
    updatePayment: (call) => {
      if (startsByUpdate(context.profile)) return start(context, call, 'authorisations', 200);
      throw new BankError(405, 'SERVICE_INVALID', 'This bank does not support PUT on a payment');
    },
  };
}

/**
 * Links of an authorisation: its status, and the bank's page for redirect, or where the TPP sends the payer's next data for
 * embedded. Decoupled uses the bank's app, so no further link.
 */
export function authorisationLinks(
  { links, profile, approvalUrl }: OperationContext,
  payment: Payment,
  type: AuthorisationType,
  { id, approach, embedded }: PaymentAuthorisation,
): Readonly<Record<string, string>> {
  const scaStatus = links.authorisation(payment, type, id);
  if (approach === 'REDIRECT') {
    const page = approvalUrl(payment, id) ?? links.scaRedirect({ id });
    return { [profile.sca.redirectLink]: page, scaStatus };
  }
  const step = embedded && linkOfStep[embedded.next];
  return { ...(step && { [step]: links.update(payment, type, id) }), scaStatus };
}

/** Starts an authorisation; with the payer's password in the body, the first step of an embedded one is done. */
function start(
  context: OperationContext,
  { route, headers, body }: OperationRequest,
  type: AuthorisationType,
  status: number,
): SimulatedResponse {
  const { payments, profile } = context;
  const data = body.length > 0 ? parseObject(body.toString('utf8')) : {};
  const payment = requirePayment(payments, route);
  requireStartable(payment, type, payments.statusOf(payment));

  const approach = approachOf(profile, headers);
  const started = payments.startAuthorisation(payment, type, approach, returnUrlsIn(headers));
  const step =
    started.embedded && hasStep(data)
      ? takeStep(context, requirePayment(payments, route), started, data)
      : undefined;
  const psuMessage = { psuMessage: 'Please use your BankApp for transaction Authorisation.' };
  const report = reportOf(context, requirePayment(payments, route), type, started.id, {
    authorisationId: started.id,
    ...(approach === 'DECOUPLED' && psuMessage),
    ...step,
  });
  return withHeaders(jsonResponse(status, report), [
    ['ASPSP-SCA-Approach', approach],
    ...context.notifications.subscribe(requirePayment(payments, route), headers),
  ]);
}

/** One step of an embedded authorisation. */
function updatePsuData(context: OperationContext, { route, body }: OperationRequest): SimulatedResponse {
  const { payments, profile } = context;
  if (!profile.sca.approaches.includes('embedded'))
    throw new BankError(405, 'SERVICE_INVALID', 'This bank does not support the embedded approach');
  const data = parseObject(body.toString('utf8'));
  const type = authorisationTypeOf(route.authorisationType);
  const payment = requirePayment(payments, route);
  const step = takeStep(context, payment, requireAuthorisation(payment, type, route.authorisationId), data);
  const after = requirePayment(payments, route);
  return jsonResponse(200, reportOf(context, after, type, route.authorisationId, step));
}

/** What the TPP gets after the start and after each step. */
function reportOf(
  context: OperationContext,
  payment: Payment,
  type: AuthorisationType,
  id: string,
  data: StepAnswer,
) {
  const authorisation = requireAuthorisation(payment, type, id);
  return {
    scaStatus: context.payments.scaStatusOf(payment, authorisation),
    ...data,
    _links: context.links.write(authorisationLinks(context, payment, type, authorisation)),
  };
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

function requireAuthorisation(payment: Payment, type: AuthorisationType, id: string): PaymentAuthorisation {
  const authorisation = authorisationsOf(payment, type).find((one) => one.id === id);
  if (!authorisation) throw new BankError(404, 'RESOURCE_UNKNOWN', 'Authorisation not found');
  return authorisation;
}
