/** The eight operations, each a function from a request to a response. Errors are thrown. */
import { headerValue } from '../pis/headers.ts';
import type { OperationName } from '../pis/operations.ts';
import { authorisationLinks, createAuthorisationOperations } from './authorisations.ts';
import { BankError } from './bank-error.ts';
import {
  approachOf,
  isTrue,
  type OperationContext,
  type OperationRequest,
  type PerformOperation,
  requirePayment,
} from './operation-context.ts';
import { isFinal, type Payment } from './payment-lifecycle.ts';
import { jsonResponse, rawResponse, type SimulatedResponse, withHeaders } from './simulated-response.ts';
import { statusReport } from './status-report.ts';
import { validateInitiation } from './validate-initiation.ts';

/** The eight operations of one bank, by name. */
export function createOperations(
  context: OperationContext,
): Readonly<Record<OperationName, PerformOperation>> {
  return {
    initiatePayment: (call) => initiatePayment(context, call),
    getPayment: (call) => getPayment(context, call),
    getPeriodicPayment: (call) => getPayment(context, call),
    getPaymentStatus: (call) => getPaymentStatus(context, call),
    cancelPayment: (call) => cancelPayment(context, call),
    ...createAuthorisationOperations(context),
  };
}

function initiatePayment(
  context: OperationContext,
  { route, headers, body }: OperationRequest,
): SimulatedResponse {
  if (headerValue(headers, 'psu-ip-address') === undefined) {
    throw new BankError(400, 'FORMAT_ERROR', 'PSU-IP-Address is missing', { path: 'PSU-IP-Address' });
  }
  const { payments, links } = context;
  const { service, product } = route;
  const contentType = validateInitiation(service, product, headers, body);
  const requestId = headerValue(headers, 'x-request-id') ?? '';
  const payment = payments.create({ service, product, requestId, contentType, order: body });

  const approach = approachOf(headers);
  const bankResponse = jsonResponse(201, {
    transactionStatus: payments.statusOf(payment),
    paymentId: payment.id,
    _links: {
      self: { href: links.payment(payment) },
      status: { href: links.status(payment) },
      ...nextStep(),
    },
  });
  return withHeaders(bankResponse, [
    ['Location', links.payment(payment)],
    ['ASPSP-SCA-Approach', approach],
    ...context.notifications.subscribe(payments.withId(payment.id) ?? payment, headers),
  ]);

  /** If the TPP prefers explicit authorisation it starts one; otherwise one was started with the payment. */
  function nextStep() {
    const type = 'authorisations';
    if (isTrue(headers, 'tpp-explicit-authorisation-preferred')) {
      return { startAuthorisation: { href: links.authorisations(payment, type) } };
    }
    return authorisationLinks(context, payment, type, payments.startAuthorisation(payment, type, approach));
  }
}

/** Returns the initiation's body: JSON with the status added, any other type byte for byte. */
function getPayment({ payments }: OperationContext, { route }: OperationRequest): SimulatedResponse {
  const payment = requirePayment(payments, route);
  if (payment.contentType !== 'application/json') return rawResponse(200, payment.contentType, payment.order);
  const order: object = JSON.parse(payment.order.toString('utf8'));
  return jsonResponse(200, { ...order, transactionStatus: payments.statusOf(payment) });
}

function getPaymentStatus(
  { payments, clock }: OperationContext,
  { route, headers }: OperationRequest,
): SimulatedResponse {
  const payment = requirePayment(payments, route);
  const status = payments.statusOf(payment);
  if (!wantsXml(payment, headerValue(headers, 'accept') ?? '*/*')) {
    const fundsAvailable = status === 'ACTC' ? { fundsAvailable: true } : {};
    return jsonResponse(200, { transactionStatus: status, ...fundsAvailable });
  }
  return rawResponse(200, 'application/xml', statusReport(payment.id, status, clock.now()));
}

function cancelPayment(
  { payments, links, notifications }: OperationContext,
  { route, headers }: OperationRequest,
): SimulatedResponse {
  const payment = requirePayment(payments, route);
  const status = payments.statusOf(payment);
  if (isFinal(status)) {
    throw new BankError(
      405,
      'CANCELLATION_INVALID',
      `The payment is ${status} and can no longer be cancelled`,
    );
  }
  const support = notifications.subscribe(payment, headers);
  if (status === 'RCVD') {
    payments.cancel(payment);
    return { status: 204, headers: support, body: Buffer.alloc(0) };
  }
  payments.requestCancellation(payment);
  const body = {
    transactionStatus: status,
    _links: {
      self: { href: links.payment(payment) },
      status: { href: links.status(payment) },
      startAuthorisation: { href: links.authorisations(payment, 'cancellation-authorisations') },
    },
  };
  return jsonResponse(202, body, support);
}

/** XML products respond in XML unless JSON is requested, JSON products in JSON unless XML is requested. */
function wantsXml(payment: Payment, accept: string): boolean {
  if (accept.includes('application/xml')) return true;
  return payment.product.startsWith('pain.001-') && !accept.includes('application/json');
}
