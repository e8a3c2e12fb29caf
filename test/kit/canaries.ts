/** Marked values for every position of a request and a response; tests search for them in all output. */

import { randomUUID } from 'node:crypto';
import { type Fault, type FaultName, faultRows } from '../../src/simulated-bank/faults.ts';
import { transfersPath } from './request.ts';

/** A value that names its position in the request. */
const canary = (place: string) => `canary-${place}`;

/** Well-formed values, for code that only recognises these: IBAN, card, address, mail, token, key. */
const lookalikes = [
  'DE89370400440532013000',
  '4111111111111111',
  '203.0.113.77',
  'anna.mueller@mail.example',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm5hIn0',
  'MIICXAIBAAKBgQ',
] as const;
const [iban, card, address, mail, token, keyBytes] = lookalikes;

/** The word as dumps of buffers show it: base64, hexadecimal, and numbers. */
const dumps = ['Y2FuYXJ5', '63 ?61 ?6e ?61 ?72 ?79', '99, ?97, ?110, ?97, ?114, ?121'];

/** Matches any canary, case-insensitive. */
export const anyCanary = new RegExp(
  ['canary', ...dumps, ...lookalikes.map((value) => value.replaceAll('.', '\\.'))].join('|'),
  'i',
);

/** Decodes every part of a text that is base64 of a text. */
export const decodeBase64Parts = (text: string): string =>
  text.replaceAll(/[A-Za-z0-9+/_-]{12,}={0,2}/g, (run) => {
    const decoded = Buffer.from(run, 'base64').toString('latin1');
    return /^[\x20-\x7e\s]+$/.test(decoded) ? decoded : run;
  });

/** Matches any canary and any of the secrets, case-insensitive. */
export const anyCanaryOr = (secrets: readonly string[]): RegExp =>
  new RegExp(
    [anyCanary.source, ...secrets.map((secret) => secret.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))].join(
      '|',
    ),
    'i',
  );

/** The API key of the requests, and one of another tenant. */
export const apiKeys = { shop: canary('api-key'), rival: canary('rivals-key') } as const;

/** Every header with secret or personal content, an unknown header, and a revealing header name. */
export const headersWithCanaries: readonly string[] = [
  `Authorization: Bearer ${token}.${canary('token')}`,
  `X-API-Key: ${apiKeys.shop}`,
  `Cookie: session=${canary('cookie')}`,
  `Consent-ID: ${canary('consent')}`,
  `PSU-ID: ${mail}`,
  `PSU-Corporate-ID: ${canary('corporate')}`,
  `PSU-IP-Address: ${address}`,
  `PSU-Geo-Location: GEO:52.5;13.4;${canary('geo')}`,
  `PSU-User-Agent: ${canary('psu-agent')}`,
  `PSU-Device-ID: ${canary('device')}`,
  `TPP-Redirect-URI: https://tpp.example/${canary('redirect')}?state=${iban}`,
  `TPP-Signature-Certificate: ${keyBytes}${canary('certificate')}`,
  `Signature: keyId="${canary('key-id')}",signature="${keyBytes}"`,
  `User-Agent: ${canary('agent')}`,
  `Referer: https://tpp.example/${canary('referer')}`,
  `X-Forwarded-For: ${address}, ${canary('forwarded')}`,
  `Forwarded: for=${canary('for')}`,
  `traceparent: 00-${canary('trace')}`,
  `tracestate: ${canary('vendor')}=${canary('state')}`,
  `baggage: user=${canary('baggage')}`,
  `PSU-ID-Type: ${canary('psu-type')}`,
  `Client-Secret: ${canary('client-secret')}`,
  `X-${canary('name')}: ${canary('value')}`,
];

export const initiationBodyWithCanaries = JSON.stringify({
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban, pan: card },
  creditorName: canary('creditor'),
  creditorAccount: { iban },
  remittanceInformationUnstructured: canary('remittance'),
});

export const paymentIdWithCanary = canary('payment-id');

/** One request of each operation, the optional ones too, on a payment with a marked id and on unknown payments. */
export function requestOfEachOperation(): readonly string[] {
  const payment = `${transfersPath}/${paymentIdWithCanary}`;
  const ask = (line: string, body = '') => requestWithCanaries(`${line} HTTP/1.1`, [], body);
  return [
    ask(`POST ${transfersPath}`, initiationBodyWithCanaries),
    ask(`GET ${payment}`),
    ask(`GET ${payment}/status?canary-query=canary-value`),
    ask(`POST ${payment}/authorisations?canary-query=canary-value`, '{"scaAuthenticationData":"canary-otp"}'),
    ask(`GET ${payment}/authorisations`),
    ask(`GET ${payment}/authorisations/canary-authorisation`),
    ask('GET /berlingroup/v1/periodic-payments/canary-product/canary-id'),
    ask(
      `PUT ${payment}/authorisations/sca-1?canary-query=canary-value`,
      '{"psuData":{"password":"canary-password"}}',
    ),
    ask(`PUT ${payment}?canary-query=canary-value`, '{"psuData":{"password":"canary-password"}}'),
    ask('GET /berlingroup/v1/bulk-payments/canary-product/canary-id?canary-query=canary-value'),
    ask(`DELETE ${payment}`),
  ];
}

/** A request as text, with canaries in every position. */
export function requestWithCanaries(requestLine: string, more: readonly string[] = [], body = ''): string {
  const framing = body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`];
  const fields = [`Host: ${canary('host')}.example`, ...headersWithCanaries, ...framing, ...more];
  const id = more.some((field) => /^x-request-id:/i.test(field)) ? [] : [`X-Request-ID: ${randomUUID()}`];
  return `${[requestLine, ...id, ...fields].join('\r\n')}\r\n\r\n${body}`;
}

const bankErrorText = `{"tppMessages":[{"text":"${canary('bank-text')} ${iban}"}],"_links":{"self":{"href":"http://[${canary('href')}"}}}`;
const secretFields = { 'Set-Cookie': canary('bank-cookie'), 'X-Bank-Node': canary('bank-node') };
const head = `HTTP/1.1 200 OK\r\nX-Bank-Node: ${canary('bank-node')}\r\n`;

/** All faults, and responses with content of the bank, well-formed and malformed. */
export const bankFaults: readonly Fault[] = [
  ...(Object.keys(faultRows) as FaultName[]).map((name) => ({ name }) as Fault), // each is complete with its defaults
  { name: 'latency', ms: 1 },
  ...[200, 204, 302, 400, 401, 404, 429, 500, 503].map((status): Fault => {
    return { name: 'status', status, headers: secretFields, body: bankErrorText };
  }),
  {
    name: 'status',
    status: 201,
    headers: { ...secretFields, Location: `http://[${canary('location')}` },
    body: bankErrorText,
  },
  {
    name: 'status',
    status: 200,
    headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
    body: canary('gzip'),
  },
  { name: 'garbage', bytes: `${canary('protocol')} ${iban}\r\n\r\n` },
  { name: 'garbage', bytes: `${head}Content-Length: ${canary('length')}\r\n\r\n` },
  { name: 'garbage', bytes: `${head}${canary('no-colon')}\r\n\r\n` },
  { name: 'garbage', bytes: `${head}X: one\r${canary('smuggled')}: two\r\n\r\n` },
  { name: 'garbage', bytes: `${head}Transfer-Encoding: chunked\r\n\r\n${canary('chunk')}\r\n` },
  { name: 'garbage', bytes: `${head}Content-Length: 900\r\n\r\n{"cut":"${canary('cut-off')}` },
  { name: 'garbage', bytes: `HTTP/1.1 101 ${canary('reason')}\r\nUpgrade: ${canary('upgrade')}\r\n\r\n` },
  { name: 'garbage', bytes: `HTTP/1.1 700 ${canary('reason')}\r\nContent-Length: 0\r\n\r\n` },
];
