/** Judges a request by the contracts of one or several environments. The body is parsed once; nothing of it is kept. */

import type { HeaderFields } from '../pis/headers.ts';
import type { OperationName } from '../pis/operations.ts';
import type { SatisfiesAll } from './compile-schemas.ts';
import {
  acceptsAnswer,
  type BodyFormat,
  checkContentType,
  essenceOf,
  formatOf,
  hasFormat,
  knownProducts,
  plainText,
} from './content-types.ts';
import type { Contract } from './contract.ts';
import { dayAt } from './dates.ts';
import { type Deviation, DeviationList } from './deviation.ts';
import { checkDigest } from './digest.ts';
import { accountIdentifications } from './field-schemas.ts';
import {
  checkAccount,
  checkEndDate,
  checkMonths,
  checkNotPast,
  checkTransfer,
  fieldOf,
} from './payment-rules.ts';
import { orderPartPath, readPeriodicParts, xmlPartPath } from './periodic-parts.ts';
import { withLevels } from './profile.ts';
import { readJson } from './read-json.ts';
import { readXml, type XmlDocument } from './read-xml.ts';
import {
  type ConsumedHeaders,
  type InspectedHeaders,
  inspectHeaders,
  judgeAddedHeaders,
  missingHeaders,
  withoutConsumed,
} from './request-headers.ts';
import type { requestDefinitions } from './request-schemas.ts';

/** A request; can be sent to a worker thread. */
export interface JudgedRequest {
  readonly operation: OperationName;
  readonly paymentService: string;
  readonly paymentProduct: string;
  /** As the TPP sent them. Headers for the gateway itself are not judged. */
  readonly headers: HeaderFields;
  /** Headers that the gateway consumes in every environment, because of the client. */
  readonly consumedHeaders?: readonly ConsumedHeaders[] | undefined;
  readonly body: Uint8Array;
  /** Milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** Service and product of the payment's initiation; `undefined` if they are not known. */
  readonly initiatedAs?: { readonly paymentService: string; readonly paymentProduct: string } | undefined;
}

/** A parsed request, which several contracts can judge. It refers to the body: drop it after that. */
export interface InspectedRequest {
  readonly request: JudgedRequest;
  readonly headers: InspectedHeaders;
  /** Deviations from every contract. */
  readonly common: readonly Deviation[];
  readonly json: InspectedJson | undefined;
  readonly xml: XmlDocument | undefined;
}

interface InspectedJson {
  readonly definition: keyof typeof requestDefinitions;
  readonly value: unknown;
  readonly repeatedKeys: readonly (readonly string[])[];
  readonly root: string;
  /** Whether the schemas of all contracts are known to be satisfied. */
  readonly isValid: boolean;
}

/**
 * Never throws because of the content of a request.
 *
 * @param satisfiesAll the combined check of all contracts that will judge the request, if there are several
 */
export function inspectRequest(request: JudgedRequest, satisfiesAll?: SatisfiesAll): InspectedRequest {
  const list = new DeviationList();
  const { operation, headers: fields, consumedHeaders = [], initiatedAs } = request;
  const headers = inspectHeaders(operation, fields, list);
  const body = asBuffer(request.body);
  if (headers.digest !== undefined) checkDigest(headers.digest, body, list);
  if (headers.accept !== undefined && !acceptsAnswer(headers.accept, operation, request.paymentProduct)) {
    list.add('notable', 'accept', 'headers/Accept', 'may-be-refused');
  }
  if (initiatedAs && initiatedAs.paymentService !== request.paymentService) {
    list.add('harmful', 'path', 'path/payment-service', 'refused');
  }
  if (initiatedAs && initiatedAs.paymentProduct !== request.paymentProduct) {
    list.add('harmful', 'path', 'path/payment-product', 'refused');
  }
  const content = inspectBody(request, headers, body, list, satisfiesAll);
  return { request, headers, common: withoutConsumed(list.sorted(), consumedHeaders, headers), ...content };
}

/** The body is a `Uint8Array` in the worker thread. */
const asBuffer = (body: Uint8Array): Buffer =>
  Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);

/** The deviations of a request from a contract, harmful ones first. */
export function judgeRequest(contract: Contract, inspected: InspectedRequest): readonly Deviation[] {
  const { request, headers, common, json, xml } = inspected;
  const list = new DeviationList();
  list.addAll(withoutConsumed(common, contract.consumedHeaders, headers));
  judgeAddedHeaders(contract.version, headers, list);
  for (const name of missingHeaders(contract.requiredHeaders[request.operation], request.headers)) {
    list.add('harmful', 'required', `headers/${name}`, 'refused');
  }
  judgePath(contract, request, list);
  if (request.body.length > 0) judgeContentType(contract, inspected, list);
  if (json) judgeJson(contract, json, request.receivedAtMs, list);
  if (xml) {
    for (const day of xml.executionDates) {
      judgeDate(contract, day, request.receivedAtMs, xml.root, 'ReqdExctnDt', list);
    }
  }
  return withLevels(contract.profile, list.sorted());
}

interface Content {
  readonly json: InspectedJson | undefined;
  readonly xml: XmlDocument | undefined;
}

const nothing: Content = { json: undefined, xml: undefined };

/** The definition of the body of an operation on an authorisation. */
const authorisationBodies: Readonly<Partial<Record<OperationName, keyof typeof requestDefinitions>>> = {
  startAuthorisation: 'authorisationStart',
  updatePsuData: 'authorisationUpdate',
};

function inspectBody(
  request: JudgedRequest,
  { contentType, contentEncoding }: InspectedHeaders,
  body: Buffer,
  list: DeviationList,
  satisfiesAll: SatisfiesAll | undefined,
): Content {
  const { operation, paymentService, paymentProduct } = request;
  if (operation === 'updatePayment') return nothing; // not in the standard
  const definition = authorisationBodies[operation];
  if (operation !== 'initiatePayment' && !definition) {
    if (body.length > 0) list.add('harmful', 'unexpected-body', 'body', 'refused');
    return nothing;
  }
  if (body.length === 0) {
    if (operation === 'initiatePayment') list.add('harmful', 'no-body', 'body', 'refused');
    return nothing;
  }
  if (contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity') {
    list.add('harmful', 'content-encoding', 'headers/Content-Encoding', 'not-judged');
    return nothing;
  }
  if (definition) {
    if (!hasFormat(contentType, 'json')) return nothing;
    return { ...nothing, json: inspectJson(body, definition, 'body', list, satisfiesAll) };
  }
  const format = formatOf(paymentService, paymentProduct);
  if (contentType !== undefined && !hasFormat(contentType, format)) return nothing; // judgeContentType reports it
  if (essenceOf(contentType) === plainText && !beginsAs(format, body)) return nothing;
  switch (format) {
    case 'json': {
      const definition = definitionOf(paymentService);
      if (definition) return { ...nothing, json: inspectJson(body, definition, 'body', list, satisfiesAll) };
      list.add('notable', 'path', 'path/payment-service', 'not-judged');
      return nothing;
    }
    case 'xml':
      return { ...nothing, xml: readXml(body, 'pain.001', request, 'xml', list) };
    case 'multipart':
      return inspectParts(request, contentType ?? '', body, list, satisfiesAll);
  }
}

/** A text/plain body can be any text, such as DTAZV: the files state no more. It is judged only if it seems to have the format. */
const beginsAs = (format: BodyFormat, body: Buffer): boolean => {
  const [first = ''] = body.toString('utf8').trimStart(); // trims a byte order mark as well
  return format === 'json' ? first === '{' || first === '[' : first === '<';
};

function definitionOf(service: string): keyof typeof requestDefinitions | undefined {
  if (service === 'payments') return 'singlePayment';
  if (service === 'bulk-payments') return 'bulkPayment';
  return service === 'periodic-payments' ? 'periodicPayment' : undefined;
}

function inspectJson(
  body: Buffer,
  definition: keyof typeof requestDefinitions,
  root: string,
  list: DeviationList,
  satisfiesAll: SatisfiesAll | undefined,
): InspectedJson | undefined {
  const read = readJson(body, root, list);
  if (!read) return undefined;
  const { value, repeatedKeys } = read;
  switch (definition) {
    case 'bulkPayment':
      checkAccount(fieldOf(value, 'debtorAccount'), root, 'debtorAccount', list);
      for (const payment of paymentsOf(value)) {
        if (list.isFull) break;
        checkTransfer(payment, `${root}/payments/#`, list);
      }
      break;
    case 'singlePayment':
    case 'periodicPayment':
      checkAccount(fieldOf(value, 'debtorAccount'), root, 'debtorAccount', list);
      checkTransfer(value, root, list);
      if (definition === 'periodicPayment') checkEndDate(value, root, list);
      break;
    case 'standingOrder':
      checkEndDate(value, root, list);
      break;
    case 'authorisationStart':
    case 'authorisationUpdate':
      if (countSteps(value) > 1) list.add('notable', 'several-bodies', root, 'may-be-refused');
      break;
    case 'bulkElement':
      break;
  }
  const isValid =
    satisfiesAll?.(definition, value) === true &&
    (definition !== 'bulkPayment' ||
      paymentsOf(value).every((payment) => satisfiesAll('bulkElement', payment)));
  return { definition, value, repeatedKeys, root, isValid };
}

const countSteps = (value: unknown) =>
  ['psuData', 'authenticationMethodId', 'scaAuthenticationData', 'confirmationCode'].filter(
    (name) => fieldOf(value, name) !== undefined,
  ).length;

function paymentsOf(bulk: unknown): readonly unknown[] {
  const payments = fieldOf(bulk, 'payments');
  return Array.isArray(payments) ? payments : [];
}

function inspectParts(
  request: JudgedRequest,
  contentType: string,
  body: Buffer,
  list: DeviationList,
  satisfiesAll: SatisfiesAll | undefined,
): Content {
  const { xml, order } = readPeriodicParts(contentType, body, list);
  return {
    xml: xml && readXml(xml, 'pain.001', request, xmlPartPath, list),
    json: order && inspectJson(order, 'standingOrder', orderPartPath, list, satisfiesAll),
  };
}

function judgePath({ profile }: Contract, { paymentProduct }: JudgedRequest, list: DeviationList): void {
  if (knownProducts.has(paymentProduct) || profile?.products.includes(paymentProduct)) return;
  list.add('usual', 'unknown', 'path/payment-product', 'may-be-refused');
}

function judgeContentType(
  { version }: Contract,
  { request: { operation, paymentService, paymentProduct }, headers: { contentType } }: InspectedRequest,
  list: DeviationList,
): void {
  if (operation !== 'initiatePayment' && !authorisationBodies[operation]) return;
  const format = operation === 'initiatePayment' ? formatOf(paymentService, paymentProduct) : 'json';
  checkContentType(version, operation, contentType, format, list);
}

function judgeJson(contract: Contract, json: InspectedJson, receivedAtMs: number, list: DeviationList): void {
  const { validators, version } = contract;
  const { definition, value, repeatedKeys, root, isValid } = json;
  for (const segments of repeatedKeys) {
    list.add('harmful', 'duplicate-key', validators.pathOf(root, segments), 'refused');
  }
  if (!isValid) validators.validate(definition, value, root, list);
  const judgeDay = (name: string) =>
    judgeDate(contract, fieldOf(value, name), receivedAtMs, root, name, list);
  switch (definition) {
    case 'bulkPayment':
      for (const payment of paymentsOf(value)) {
        if (list.isFull) break;
        if (!isValid) validators.validate('bulkElement', payment, `${root}/payments/#`, list);
        judgeCreditor(contract, payment, `${root}/payments/#`, list);
      }
      judgeDebtor(contract, value, root, list);
      judgeDay('requestedExecutionDate');
      break;
    case 'singlePayment':
    case 'periodicPayment':
      judgeCreditor(contract, value, root, list);
      judgeDebtor(contract, value, root, list);
      judgeDay(definition === 'singlePayment' ? 'requestedExecutionDate' : 'startDate');
      if (definition === 'periodicPayment') checkMonths(value, version === '1.3.11', root, list);
      break;
    case 'standingOrder':
      judgeDay('startDate');
      checkMonths(value, version === '1.3.11', root, list);
      break;
    case 'authorisationStart':
    case 'authorisationUpdate':
    case 'bulkElement':
      break;
  }
}

/** A creditor's account without an identification: the schema of the files accepts it. */
function judgeCreditor(contract: Contract, transfer: unknown, root: string, list: DeviationList): void {
  if (!isUnidentified(contract, fieldOf(transfer, 'creditorAccount'))) return;
  list.add('harmful', 'identification', `${root}/creditorAccount`, 'refused');
}

function judgeDebtor(contract: Contract, value: unknown, root: string, list: DeviationList): void {
  if (!isUnidentified(contract, fieldOf(value, 'debtorAccount'))) return;
  list.add('notable', 'identification', `${root}/debtorAccount`, 'may-be-refused'); // some banks let the PSU choose the account
}

function isUnidentified({ version, profile }: Contract, account: unknown): boolean {
  if (typeof account !== 'object' || account === null) return false; // the schema reports it
  if (accountIdentifications.some((name) => fieldOf(account, name) !== undefined)) return false;
  const hasOther = version === '1.3.11' || profile?.fields.some(({ field }) => field === 'other');
  return !(hasOther && fieldOf(account, 'other') !== undefined);
}

function judgeDate(
  { timeZone }: Contract,
  value: unknown,
  receivedAtMs: number,
  root: string,
  name: string,
  list: DeviationList,
): void {
  if (value === undefined) return;
  checkNotPast(value, dayAt(receivedAtMs, timeZone), timeZone !== undefined, `${root}/${name}`, list);
}
