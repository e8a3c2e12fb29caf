/** Valid requests in every form of the standard, which tests of the contract guard vary; written without reading the schemas. */

import type { Call } from './call.ts';
import { exampleOf } from './examples.ts';
import type { Field } from './fields.ts';

export interface ContractRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Behind `/v1`. `{single}`, `{bulk}` and `{periodic}` stand for payments that the test has initiated with `initiated`. */
  readonly path: string;
  readonly headers: readonly Field[];
  readonly body?: string | Buffer;
}

/** Fields to add or to replace; `null` removes a field. */
export type Changes = Readonly<Record<string, string | null>>;

export const debtorAccount = { iban: 'DE40100100103307118608' };
export const creditorAccount = { iban: 'DE02100100109307118603' };

const transfer = {
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  creditorName: 'Bäckerei Sonnenschein',
  creditorAccount,
  remittanceInformationUnstructured: 'Rechnung 4711 vom Frühstück',
};
const startAndFrequency = { startDate: '2031-03-01', frequency: 'Monthly' };

export const singleBody = { ...transfer, debtorAccount };
export const bulkElement = transfer;
export const bulkBody = {
  debtorAccount,
  payments: [transfer, { ...transfer, creditorName: 'Gärtnerei Abendrot' }],
};
export const periodicBody = { ...singleBody, ...startAndFrequency };

const onlineHeaders: readonly Field[] = [
  ['PSU-IP-Address', '192.168.8.78'],
  ['Accept', 'application/json'],
  ['TPP-Redirect-URI', 'https://tpp.example/return/ok'],
];

export const transfers = '/payments/sepa-credit-transfers';
export const bulkTransfers = '/bulk-payments/sepa-credit-transfers';
export const standingOrders = '/periodic-payments/sepa-credit-transfers';

/** The initiations from which the other operations start. */
export const initiated = {
  single: () => single({}),
  bulk: () => bulk({}),
  periodic: () => periodic({}),
} as const;

/** @param payments the ids of payments that `initiated` has created, by name */
export const callOf = (
  { method, path, headers, body }: ContractRequest,
  payments: Readonly<Record<string, string>>,
): Call => ({
  ...{ method, headers },
  path: `/berlingroup/v1${path.replace(/\{(\w+)\}/, (_, name: string) => payments[name] ?? '')}`,
  body: body ?? (method === 'POST' ? '' : undefined),
});

/** @param changes to the body; `undefined` removes a field */
export const single = (changes: object, headers: Changes = {}) =>
  post(transfers, JSON.stringify({ ...singleBody, ...changes }), headers);
export const bulk = (changes: object, headers: Changes = {}) =>
  post(bulkTransfers, JSON.stringify({ ...bulkBody, ...changes }), headers);
export const periodic = (changes: object, headers: Changes = {}) =>
  post(standingOrders, JSON.stringify({ ...periodicBody, ...changes }), headers);

/** A bulk of one valid element and one with these changes. */
export const bulkWith = (changes: object) =>
  bulk({ payments: [bulkElement, { ...bulkElement, ...changes }] });

/** An initiation with a JSON body as it stands. */
export const post = (
  path: string,
  body: string | Buffer | undefined,
  headers: Changes = {},
): ContractRequest => ({
  method: 'POST',
  path,
  headers: changed([...onlineHeaders, ['Content-Type', 'application/json']], headers),
  ...(body !== undefined && { body }),
});

/** The pain.001 message that the standard publishes, with other names. */
export const pain001 = (exampleOf('initiate-payment-pain001').body ?? '').replaceAll(
  'Merchant123',
  'Confiserie Morgenstern',
);

export const xml = (body: string | Buffer | undefined, headers: Changes = {}) =>
  post('/payments/pain.001-sepa-credit-transfers', body, { 'Content-Type': 'application/xml', ...headers });
export const bulkXml = (body: string) =>
  post('/bulk-payments/pain.001-sepa-credit-transfers', body, { 'Content-Type': 'application/xml' });

export interface Part {
  readonly name: string;
  readonly body: string;
  /** The whole header of the part, without the empty line; by default the usual two fields. */
  readonly head?: string;
}

export const standingOrder = { ...startAndFrequency, executionRule: 'preceding', dayOfExecution: '1' };
export const xmlPart: Part = { name: 'xml_sct', body: pain001 };
export const jsonPart = (changes: object = {}): Part => ({
  name: 'json_standingorderType',
  body: JSON.stringify({ ...standingOrder, ...changes }),
});

const boundary = 'AaaBbbCcc';

/** A periodic payment in XML, of these parts. */
export const multipart = (parts: readonly Part[], headers: Changes = {}) =>
  multipartBody(`${parts.map(partText).join('')}--${boundary}--\r\n`, headers);

/** As `multipart`, with a body as it stands. */
export const multipartBody = (body: string | Buffer, headers: Changes = {}) =>
  post('/periodic-payments/pain.001-sepa-credit-transfers', body, {
    'Content-Type': `multipart/form-data; boundary=${boundary}`,
    ...headers,
  });

export function partText({ name, body, head }: Part): string {
  const type = name === 'xml_sct' ? 'application/xml' : 'application/json';
  const usual = `Content-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}`;
  return `--${boundary}\r\n${head ?? usual}\r\n\r\n${body}\r\n`;
}

/** Starts an authorisation of the single payment. */
export const authorise = (body: unknown, headers: Changes = {}): ContractRequest =>
  authoriseWith(JSON.stringify(body), headers);

/** As `authorise`, with a body as it stands. */
export const authoriseWith = (body: string | undefined, headers: Changes = {}): ContractRequest => ({
  method: 'POST',
  path: `${transfers}/{single}/authorisations`,
  headers: changed([['Content-Type', 'application/json']], headers),
  ...(body !== undefined && { body }),
});

export const read = (path: string, headers: Changes = {}): ContractRequest => ({
  method: 'GET',
  path,
  headers: changed([['Accept', 'application/json']], headers),
});

export const cancel = (path: string, headers: Changes = {}): ContractRequest => ({
  method: 'DELETE',
  path,
  headers: changed([], headers),
});

function changed(fields: readonly Field[], changes: Changes): readonly Field[] {
  const replaced = new Set(Object.keys(changes).map((name) => name.toLowerCase()));
  const added = Object.entries(changes).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const],
  );
  return [...fields.filter(([name]) => !replaced.has(name.toLowerCase())), ...added];
}
