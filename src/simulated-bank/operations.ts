/** The operations, each a function from a request to a response. Errors are thrown. */
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
  returnUrlsIn,
} from './operation-context.ts';
import { isFinal, type Payment } from './payment-lifecycle.ts';
import { type BankProfile, startsByUpdate } from './profile.ts';
import { jsonResponse, rawResponse, type SimulatedResponse, withHeaders } from './simulated-response.ts';
import { statusReport } from './status-report.ts';
import { validateInitiation } from './validate-initiation.ts';

/** The operations of one bank, by name. */
export function createOperations(
  context: OperationContext,
): Readonly<Record<OperationName, PerformOperation>> {
  return {
    initiatePayment: (call) => initiatePayment(context, call),
    getPayment: (call) => getPayment(context, call),
    getPeriodicPayment: (call) => getPayment(context, call),
    getBulkPayment: (call) => getPayment(context, call),
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
  const { profile, payments, links } = context;
  const { service, product } = route;
  const contentType = validateInitiation(service, product, headers, body);
  const requestId = headerValue(headers, 'x-request-id') ?? '';
  const payment = payments.create({
    service,
    product,
    requestId,
    contentType,
    order: body,
    returnTo: returnUrlsIn(headers),
  });

  const approach = approachOf(profile, headers);
  const bankResponse = jsonResponse(profile.answers.initiation, {
    transactionStatus: payments.statusOf(payment),
    paymentId: payment.id,
    _links: links.write({
      self: links.payment(payment),
      status: links.status(payment),
      ...nextStep(),
      ...links.further(payment),
    }),
  });
  return withHeaders(bankResponse, [
    ['Location', links.location(payment)],
    ['ASPSP-SCA-Approach', approach],
    ...context.notifications.subscribe(payments.withId(payment.id) ?? payment, headers),
  ]);

  /** If the TPP prefers explicit authorisation, or the bank requires it, the TPP starts one; otherwise one was started with the payment. */
  function nextStep(): Readonly<Record<string, string>> {
    const type = 'authorisations';
    const { startLink } = profile.sca;
    if (startLink !== undefined && startsByUpdate(profile)) return { [startLink]: links.payment(payment) };
    if (startLink !== undefined || isTrue(headers, 'tpp-explicit-authorisation-preferred'))
      return { [startLink ?? 'startAuthorisation']: links.authorisations(payment, type) };
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
  { profile, payments, clock }: OperationContext,
  { route, headers }: OperationRequest,
): SimulatedResponse {
  const payment = requirePayment(payments, route);
  const status = payments.statusOf(payment);
  const { format, charset, contentType } = profile.status;
  const isXml =
    format === 'accept' ? wantsXml(payment, headerValue(headers, 'accept') ?? '*/*') : format === 'pain.002';
  if (!isXml) {
    const fundsAvailable = status === 'ACTC' ? { fundsAvailable: true } : {};
    const body = JSON.stringify({ transactionStatus: status, ...fundsAvailable });
    return rawResponse(200, contentType ?? 'application/json', encodeText(body, charset));
  }
  const report = statusReport(payment.id, status, clock.now());
  return rawResponse(200, contentType ?? 'application/xml', encodeText(report, charset));
}

function cancelPayment(
  { profile, payments, links, notifications }: OperationContext,
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
  const { cancellation } = profile.answers;
  if (status === 'RCVD' && cancellation !== 202) {
    payments.cancel(payment);
    if (cancellation === 204) return { status: 204, headers: support, body: Buffer.alloc(0) };
    return jsonResponse(200, { transactionStatus: 'CANC' }, support);
  }
  payments.requestCancellation(payment);
  const body = {
    transactionStatus: status,
    _links: links.write({
      self: links.payment(payment),
      status: links.status(payment),
      startAuthorisation: links.authorisations(payment, 'cancellation-authorisations'),
    }),
  };
  return jsonResponse(202, body, support);
}

/** UTF-16 begins with a byte order mark. */
function encodeText(text: string, charset: BankProfile['status']['charset']): Buffer {
  if (charset === 'utf-8') return Buffer.from(text);
  const littleEndian = Buffer.from(`\ufeff${text}`, 'utf16le');
  return charset === 'utf-16le' ? littleEndian : littleEndian.swap16();
}

/** XML products respond in XML unless JSON is requested, JSON products in JSON unless XML is requested. */
function wantsXml(payment: Payment, accept: string): boolean {
  if (accept.includes('application/xml')) return true;
  return payment.product.startsWith('pain.001-') && !accept.includes('application/json');
}
