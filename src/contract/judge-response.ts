/** Judges the answer of a bank by a contract. Its deviations are only reported: an answer is never refused. */

import { type HeaderFields, lowerCase } from '../pis/headers.ts';
import { isJson } from '../pis/media-type.ts';
import type { OperationName } from '../pis/operations.ts';
import { linkNames } from './answer-schemas.ts';
import { essenceOf, isXmlProduct, mediaTypes } from './content-types.ts';
import type { Contract } from './contract.ts';
import { type Deviation, DeviationList, type Rule } from './deviation.ts';
import { fieldOf } from './payment-rules.ts';
import { orderPartPath, readPeriodicParts, unknownPartPath, xmlPartPath } from './periodic-parts.ts';
import { withLevels } from './profile.ts';
import { readJson } from './read-json.ts';
import { type MessageName, readXml } from './read-xml.ts';

export interface JudgedResponse {
  readonly operation: OperationName;
  readonly paymentService: string;
  readonly paymentProduct: string;
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: Uint8Array;
}

/** A parsed answer, which several contracts can judge. It refers to the body: drop it after that. */
export interface InspectedResponse {
  readonly common: readonly Deviation[];
  readonly json: InspectedJson | undefined;
}

interface InspectedJson {
  readonly definition: string;
  readonly root: 'body' | 'error' | typeof orderPartPath;
  readonly value: unknown;
  readonly repeatedKeys: readonly (readonly string[])[];
  /** Only of an error: whether the files define its body. */
  readonly isDescribed?: boolean | undefined;
}

/** Never throws because of the content of an answer. */
export function inspectResponse(response: JudgedResponse): InspectedResponse {
  const list = new DeviationList();
  const { operation, status } = response;
  judgeStatus(operation, status, list);
  const headers = inspectAnswerHeaders(response, list);
  const body = Buffer.from(response.body.buffer, response.body.byteOffset, response.body.byteLength);
  if (headers.isEncoded) {
    list.add('notable', 'content-encoding', 'headers/Content-Encoding', 'not-judged');
    return { common: list.sorted(), json: undefined };
  }
  const json = inspectBody(response, headers.contentType, body, list);
  return { common: list.sorted(), json };
}

/** The deviations of an answer from a contract, harmful ones first. */
export function judgeResponse(contract: Contract, { common, json }: InspectedResponse): readonly Deviation[] {
  const list = new DeviationList();
  list.addAll(common);
  if (json?.root === 'error') judgeError(contract, json, list);
  else if (json) judgeJson(contract, json, list);
  return withLevels(contract.profile, list.sorted());
}

interface Success {
  readonly status: number;
  /** The definition of the body; `undefined` if there is none. */
  readonly definition: string | undefined;
}

/** OpenAPI of 1.3.6 and 1.3.11, which agree on every status. Of an operation that is not in the standard, only errors are judged. */
const successes: Readonly<Record<OperationName, readonly Success[]>> = {
  initiatePayment: [{ status: 201, definition: 'paymentInitiated' }],
  getPayment: [{ status: 200, definition: 'shownPayment' }],
  getPeriodicPayment: [{ status: 200, definition: 'shownPeriodicPayment' }],
  getPaymentStatus: [{ status: 200, definition: 'paymentStatus' }],
  cancelPayment: [
    { status: 204, definition: undefined },
    { status: 202, definition: 'cancellationStarted' },
  ],
  startAuthorisation: [{ status: 201, definition: 'authorisationStarted' }],
  listAuthorisations: [{ status: 200, definition: 'authorisationList' }],
  getAuthorisation: [{ status: 200, definition: 'authorisation' }],
  updatePsuData: [{ status: 200, definition: 'authorisationUpdated' }],
  updatePayment: [], // not in the standard
  getBulkPayment: [{ status: 200, definition: 'shownBulkPayment' }],
};

const errors: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 406, 408, 409, 415, 429, 500, 503]);

function judgeStatus(operation: OperationName, status: number, list: DeviationList): void {
  if (errors.has(status) || successes[operation].some((success) => success.status === status)) return;
  if (status < 300 && successes[operation].length === 0) return;
  const path = `status/${Math.floor(status / 100)}xx`;
  // 200 answers a repeated initiation, and a cancellation at some banks (Bank Frick); other errors are from RFC 9110.
  const isKnown = status === 200 && (operation === 'initiatePayment' || operation === 'cancelPayment');
  if (status >= 400) list.add('usual', 'status', path, 'none');
  else list.add(isKnown ? 'notable' : 'harmful', 'status', path, 'client-may-fail');
}

function inspectAnswerHeaders({ headers }: JudgedResponse, list: DeviationList) {
  let contentType: string | undefined;
  let isEncoded = false;
  let hasRequestId = false;
  for (const [field, value] of headers) {
    const name = lowerCase(field);
    if (name === 'content-type') contentType = value;
    else if (name === 'x-request-id') hasRequestId = true;
    else if (name === 'content-encoding') isEncoded = value.toLowerCase() !== 'identity';
    else {
      const check = checkedHeaders.get(name);
      if (check && !check.pattern.test(value)) {
        list.add('harmful', 'pattern', `headers/${check.name}`, 'client-may-fail');
      }
    }
  }
  if (!hasRequestId) list.add('usual', 'required', 'headers/X-Request-ID', 'none'); // the gateway adds it
  return { contentType, isEncoded };
}

const isReference = /^[^\s<>"{}|\\^`]+$/;

const checkedHeaders: ReadonlyMap<string, { readonly name: string; readonly pattern: RegExp }> = new Map(
  [
    { name: 'ASPSP-SCA-Approach', pattern: /^(?:EMBEDDED|DECOUPLED|REDIRECT)$/ },
    { name: 'ASPSP-Notification-Support', pattern: /^(?:true|false)$/ },
    { name: 'Location', pattern: isReference },
  ].map((check) => [check.name.toLowerCase(), check]),
);

function inspectBody(
  response: JudgedResponse,
  contentType: string | undefined,
  body: Buffer,
  list: DeviationList,
): InspectedJson | undefined {
  const { operation, status } = response;
  if (status >= 400) return inspectError(status, contentType, body, list);
  const success = successes[operation].find((one) => one.status === status) ?? repeated(operation, status);
  if (!success) return undefined;
  if (success.definition === undefined) {
    if (body.length > 0) list.add('notable', 'unexpected-body', 'body', 'none');
    return undefined;
  }
  if (body.length === 0) return void list.add('harmful', 'no-body', 'body', 'client-may-fail');
  const essence = essenceOf(contentType);
  if (essence === mediaTypes.json) return inspectJson(body, success.definition, 'body', list);
  const message = messageOf(response);
  if (message && (essence === mediaTypes.xml || essence === 'text/xml')) {
    return void inspectXml(response, message, body, 'xml', list);
  }
  if (message && operation === 'getPeriodicPayment' && essence === mediaTypes.multipart) {
    return inspectParts(response, contentType ?? '', body, list);
  }
  return void list.add('harmful', 'content-type', 'headers/Content-Type', 'client-may-fail');
}

/** 200 instead of 201 for a repeated initiation has the same body. */
const repeated = (operation: OperationName, status: number): Success | undefined =>
  operation === 'initiatePayment' && status === 200 ? successes.initiatePayment[0] : undefined;

const showsPayment: ReadonlySet<OperationName> = new Set([
  'getPayment',
  'getPeriodicPayment',
  'getBulkPayment',
]);

/** The ISO 20022 message that a bank may return for a payment in XML. */
function messageOf({ operation, paymentProduct }: JudgedResponse): MessageName | undefined {
  if (!isXmlProduct(paymentProduct)) return undefined;
  if (operation === 'getPaymentStatus') return 'pain.002';
  return showsPayment.has(operation) ? 'pain.001' : undefined;
}

function inspectXml(
  response: JudgedResponse,
  message: MessageName,
  body: Buffer,
  root: string,
  list: DeviationList,
): void {
  const found = new DeviationList();
  readXml(body, message, response, root, found);
  list.addAll(found.sorted().map(inAnswer));
}

/** A standing order in XML, as it was sent. */
function inspectParts(
  response: JudgedResponse,
  contentType: string,
  body: Buffer,
  list: DeviationList,
): InspectedJson | undefined {
  const found = new DeviationList();
  const { xml, order } = readPeriodicParts(contentType, body, found);
  list.addAll(found.sorted().map(inAnswer));
  if (xml) inspectXml(response, 'pain.001', xml, xmlPartPath, list);
  return order && inspectJson(order, 'shownStandingOrder', orderPartPath, list);
}

/**
 * The errors for which the files define a body, in one of two formats, the same ones in both versions. The others are often sent by
 * proxies in front of the bank.
 */
const describedErrors: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 409]);
/** Firewalls and TLS proxies in front of a bank refuse clients with a page in HTML. */
const refusedByProxies: ReadonlySet<number> = new Set([401, 403]);
const problemType = 'application/problem+json';

/** An error is harmful if a client cannot read its code. Banks differ in the rest. */
function inspectError(
  status: number,
  contentType: string | undefined,
  body: Buffer,
  list: DeviationList,
): InspectedJson | undefined {
  if (body.length === 0) return undefined; // the status is all that a client needs
  const isDescribed = describedErrors.has(status);
  const essence = essenceOf(contentType);
  if (!isJson(contentType)) {
    if (!isDescribed || (essence === 'text/html' && refusedByProxies.has(status))) {
      return void list.add('usual', 'content-type', 'error', 'none');
    }
    return void list.add('harmful', 'content-type', 'error', 'client-may-fail');
  }
  const found = new DeviationList();
  const json = inspectJson(body, 'problem', 'error', found);
  list.addAll(isDescribed ? found.sorted() : found.sorted().map(asUsual));
  if (!json) return undefined;
  const definition = errorFormatOf(json.value, essence);
  const isMislabelled = (definition === 'problem') !== (essence === problemType);
  if (isDescribed && isMislabelled) list.add('notable', 'content-type', 'error', 'client-may-fail');
  return { ...json, definition, isDescribed };
}

/** The format of the code in the body; without a code, the format of the content type. */
function errorFormatOf(value: unknown, essence: string): 'tppMessagesError' | 'problem' {
  if (fieldOf(value, 'tppMessages') !== undefined) return 'tppMessagesError';
  return fieldOf(value, 'code') !== undefined || essence === problemType ? 'problem' : 'tppMessagesError';
}

const asUsual = (deviation: Deviation): Deviation => ({ ...deviation, level: 'usual', effect: 'none' });

/** Without these fields, a client does not know what the error is. */
const neededInErrors: ReadonlySet<string> = new Set([
  'error',
  'error/tppMessages',
  'error/tppMessages/#',
  'error/tppMessages/#/category',
  'error/tppMessages/#/code',
  'error/code',
]);
const unreadable: ReadonlySet<Rule> = new Set(['required', 'type', 'enum', 'pattern', 'min-items']);

function judgeError({ validators }: Contract, json: InspectedJson, list: DeviationList): void {
  const { definition, root, value, repeatedKeys, isDescribed } = json;
  for (const segments of repeatedKeys) {
    list.add('usual', 'duplicate-key', validators.pathOf(root, segments), 'none');
  }
  const found = new DeviationList();
  validators.validate(definition, value, root, found);
  for (const deviation of found.sorted()) {
    const isHarmful = isDescribed && neededInErrors.has(deviation.path) && unreadable.has(deviation.rule);
    list.addAll([
      isHarmful ? { ...deviation, level: 'harmful', effect: 'client-may-fail' } : asUsual(deviation),
    ]);
  }
}

function inspectJson(
  body: Buffer,
  definition: string,
  root: InspectedJson['root'],
  list: DeviationList,
): InspectedJson | undefined {
  const found = new DeviationList();
  const read = readJson(body, root, found);
  list.addAll(found.sorted().map(inAnswer));
  return read && { definition, root, ...read };
}

/** Converts a deviation that a reader of bodies reports as one of a request. */
function inAnswer(deviation: Deviation): Deviation {
  if (deviation.effect === 'not-judged') return { ...deviation, level: 'notable' };
  if (deviation.path === unknownPartPath) return { ...deviation, level: 'usual', effect: 'none' };
  return { ...deviation, effect: 'client-may-fail' };
}

function judgeJson({ validators }: Contract, json: InspectedJson, list: DeviationList): void {
  const { definition, root, value, repeatedKeys } = json;
  for (const segments of repeatedKeys) {
    list.add('harmful', 'duplicate-key', validators.pathOf(root, segments), 'client-may-fail');
  }
  validators.validate(definition, value, root, list);
  judgeLinks(definition, fieldOf(value, '_links'), list);
}

/** A bank may have links of its own. Clients follow links by their names: they do not find one that a bank has renamed. */
function judgeLinks(definition: string, links: unknown, list: DeviationList): void {
  if (typeof links !== 'object' || links === null || Array.isArray(links)) return;
  const names = Object.keys(links);
  if (names.length === 0 && mustHaveLinks.has(definition))
    list.add('notable', 'link', 'body/_links', 'client-may-fail');
  if (names.some((name) => !linkNames.has(name)))
    list.add('notable', 'unknown', 'body/_links/*', 'client-may-fail');
}

const mustHaveLinks: ReadonlySet<string> = new Set(['paymentInitiated', 'authorisationStarted']);
