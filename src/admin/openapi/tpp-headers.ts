/** Types and descriptions of the headers that TPP systems send and get, for their OpenAPI description. */

import { headersOf } from '../../contract/request-headers.ts';
import type { operations } from '../../pis/operations.ts';
import { ref } from './payment-paths.ts';

type Row = (typeof operations)[number];

interface Header {
  readonly schema: object;
  readonly description: string;
  readonly example?: unknown;
}

const text = { type: 'string' };
const truth = { type: 'boolean' };
const uri = { type: 'string', format: 'uri' };
const uuid = { type: 'string', format: 'uuid' };
const address = {
  anyOf: [
    { type: 'string', format: 'ipv4' },
    { type: 'string', format: 'ipv6' },
  ],
};

/** OpenAPI describes them with bodies and security schemes; the last one concerns the HTTP library. */
const notParameters = ['Content-Type', 'Accept', 'Authorization', 'Content-Encoding'];

/** Of the standard. The types are those of the contract guard. */
const standardHeaders: Readonly<Record<string, Header>> = {
  'PSU-IP-Address': {
    schema: address,
    description:
      'The IP address of the payer’s device. Some banks refuse IPv6. The gateway forwards it unchanged.',
    example: '192.0.2.7',
  },
  'Consent-ID': { schema: text, description: 'A consent of the payer that the bank has given an id.' },
  'PSU-ID': { schema: text, description: 'How the bank identifies the payer.' },
  'PSU-ID-Type': { schema: text, description: 'The type of `PSU-ID`, as the bank documents it.' },
  'PSU-Corporate-ID': { schema: text, description: 'The company of the payer.' },
  'PSU-Corporate-ID-Type': {
    schema: text,
    description: 'The type of `PSU-Corporate-ID`, as the bank documents it.',
  },
  'TPP-Redirect-Preferred': {
    schema: truth,
    description:
      'Whether the payer should authorise on a page of the bank. `true` requires `TPP-Redirect-URI`.',
  },
  'TPP-Decoupled-Preferred': {
    schema: truth,
    description: 'Whether the payer should authorise with another device. 1.3.11 only.',
  },
  'TPP-Redirect-URI': {
    schema: uri,
    description: 'Where the bank sends the payer after the authorisation.',
    example: 'https://tpp.example/authorised',
  },
  'TPP-Nok-Redirect-URI': {
    schema: uri,
    description: 'Where the bank sends the payer if the authorisation fails.',
    example: 'https://tpp.example/failed',
  },
  'TPP-Explicit-Authorisation-Preferred': {
    schema: truth,
    description: 'Whether you start the authorisation yourself. By default, the bank starts it.',
  },
  'TPP-Rejection-NoFunds-Preferred': {
    schema: truth,
    description: 'Whether the bank should reject the payment if the account has not enough money.',
  },
  'TPP-Brand-Logging-Information': { schema: text, description: 'The brand of the TPP that the payer uses.' },
  'TPP-Notification-URI': {
    schema: uri,
    description:
      'Where the gateway sends the status of the payment when it changes: a URL that the operators allow for your client. For clients without ' +
      'webhooks, this and `TPP-Notification-Content-Preferred` go to the bank: docs/callers/webhooks.md.',
    example: 'https://tpp.example/psd2/payments',
  },
  'TPP-Notification-Content-Preferred': {
    schema: text,
    description:
      '`PROCESS`, the default: each change of the status. `LAST`: the last status only. `SCA`: each change of the status of an authorisation.',
    example: 'status=SCA,PROCESS',
  },
  Digest: { schema: text, description: 'The digest of the body (RFC 3230), if you sign the request.' },
  Signature: { schema: text, description: 'The signature of the request, if you sign it yourself.' },
  'TPP-Signature-Certificate': {
    schema: { type: 'string', contentEncoding: 'base64' },
    description: 'The certificate of `Signature`.',
  },
  'PSU-IP-Port': {
    schema: { type: 'string', pattern: '^[0-9]{1,5}$' },
    description: 'The port of the payer’s device.',
  },
  'PSU-Accept': { schema: text, description: '`Accept` of the payer’s device.' },
  'PSU-Accept-Charset': { schema: text, description: '`Accept-Charset` of the payer’s device.' },
  'PSU-Accept-Encoding': { schema: text, description: '`Accept-Encoding` of the payer’s device.' },
  'PSU-Accept-Language': { schema: text, description: '`Accept-Language` of the payer’s device.' },
  'PSU-User-Agent': { schema: text, description: '`User-Agent` of the payer’s device.' },
  'PSU-Http-Method': {
    schema: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] },
    description: 'The method that the payer’s device has used towards you.',
  },
  'PSU-Device-ID': { schema: uuid, description: 'An id of the payer’s device or of its installation.' },
  'PSU-Geo-Location': {
    schema: { type: 'string', pattern: '^GEO:-?[0-9]{1,3}(\\.[0-9]{1,15})?;-?[0-9]{1,3}(\\.[0-9]{1,15})?$' },
    description: 'Where the payer’s device is.',
    example: 'GEO:52.506931;13.144558',
  },
};

/** Of the gateway, and of HTTP as far as the gateway has a meaning of its own for it. */
const gatewayHeaders = {
  'X-Request-ID': {
    schema: uuid,
    description:
      'The id of the request. For writes it is the idempotency key: a repeat has the same id and gets the first response.',
    example: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  },
  'Penstock-Environment': {
    schema: text,
    description: 'The environment to use; must be one that the client is allowed to use.',
    example: 'sandbox',
  },
  'If-None-Match': {
    schema: text,
    description:
      'Tags of earlier responses. If all of them are tags of the gateway, the response is 304 while the status has one of them.',
    example: 'W/"penstock-Tmz3Zt0B4BgOqCw8RKPyDA"',
  },
  Prefer: {
    schema: text,
    description:
      '`wait=N`: the response comes when the status has changed, or after N seconds, at most `notifications.maxWait`.',
    example: 'wait=50',
  },
  'Last-Event-ID': {
    schema: text,
    description: 'With `Accept: text/event-stream`: the id of the last event that was received.',
  },
  'Cache-Control': {
    schema: text,
    description:
      '`no-cache`: the bank is asked. `only-if-cached`: the bank is not asked; 504 `NOT_CACHED` if no status is cached.',
  },
} as const satisfies Readonly<Record<string, Header>>;

type GatewayHeader = keyof typeof gatewayHeaders;

const ofEveryRequest: readonly GatewayHeader[] = ['X-Request-ID', 'Penstock-Environment'];
const ofStatusReads: readonly GatewayHeader[] = ['If-None-Match', 'Prefer', 'Last-Event-ID', 'Cache-Control'];

/** The parameters of an operation that are headers. */
export function headerParameters(row: Row): readonly object[] {
  const ofGateway = row.readsStatus ? [...ofEveryRequest, ...ofStatusReads] : ofEveryRequest;
  const ofStandard = headersOf(row.name)
    .filter(({ name }) => !notParameters.includes(name))
    .map(({ name, isRequired }) =>
      isRequired ? { ...parameterOf(name), required: true } : parameterRef(name),
    );
  return [...ofGateway.map(parameterRef), ...ofStandard];
}

const parameterRef = (name: string) => ref('parameters', name);

function parameterOf(name: string) {
  const header = standardHeaders[name];
  if (!header) throw new Error(`tpp-headers.ts does not describe ${name}`);
  return { name, in: 'header', ...header };
}

/** The components that `headerParameters` refers to. */
export const headerParameterComponents = () => ({
  ...Object.fromEntries(
    Object.entries(gatewayHeaders).map(([name, header]) => [
      name,
      { name, in: 'header', ...header, ...(name === 'X-Request-ID' && { required: true }) },
    ]),
  ),
  ...Object.fromEntries(Object.keys(standardHeaders).map((name) => [name, parameterOf(name)])),
});

/** The headers of responses. */
export const responseHeaders = {
  'X-Request-ID': { schema: uuid, description: 'The id of the request.' },
  Location: {
    schema: { type: 'string', format: 'uri-reference' },
    description: 'The created resource, at the gateway.',
  },
  'ASPSP-SCA-Approach': {
    schema: { type: 'string', enum: ['EMBEDDED', 'DECOUPLED', 'REDIRECT'] },
    description: 'How the payer authorises the payment.',
  },
  'ASPSP-Notification-Support': {
    schema: truth,
    description:
      '`true` if the gateway has stored the subscription; `false` if it sends nothing. Missing if your client has no webhooks.',
  },
  'ASPSP-Notification-Content': {
    schema: text,
    description: 'What the gateway sends.',
    example: 'status=PROCESS',
  },
  'Penstock-Environment': {
    schema: text,
    description: 'The environment of the bank that handled the request; missing if none was chosen.',
  },
  'Penstock-Error': {
    schema: ref('schemas', 'GatewayErrorCode'),
    description:
      'The code of an error that the gateway generated: docs/errors.md. Missing in responses of the bank.',
  },
  'Penstock-Outcome': {
    schema: { type: 'string', enum: ['unknown'] },
    description:
      'The answer of the bank leaves open whether it has executed the request; a repeat gets `DUPLICATE_IN_DOUBT`. Status and body are the bank’s.',
  },
  'Idempotent-Replayed': {
    schema: truth,
    description:
      '`true` if this is the stored response to an earlier request with the same id; a long response is stored only in part.',
  },
  'Cache-Status': {
    schema: text,
    description: 'Whether the status comes from the cache (RFC 9211).',
    example: 'penstock; hit; ttl=4',
  },
  Age: { schema: { type: 'integer', minimum: 0 }, description: 'The age of a cached status, in seconds.' },
  ETag: {
    schema: text,
    description: 'The tag of the status, unless the bank sends its own: docs/callers/payment-status.md.',
    example: 'W/"penstock-Tmz3Zt0B4BgOqCw8RKPyDA"',
  },
  'Preference-Applied': {
    schema: text,
    description: '`wait=N` if the read has waited, or would have waited, for N seconds.',
    example: 'wait=50',
  },
  'Cache-Control': { schema: text, description: '`no-store`, unless the bank sends its own.' },
  'Retry-After': {
    schema: { anyOf: [{ type: 'integer', minimum: 0 }, { type: 'string' }] },
    description:
      'When to repeat the request, in seconds. In a response of the bank, it may be a date (RFC 9110).',
  },
  RateLimit: {
    schema: text,
    description: 'What is left of the quota of the client, if it has one (IETF draft on RateLimit fields).',
  },
  'RateLimit-Policy': { schema: text, description: 'The quota of the client, if it has one.' },
  'Proxy-Status': { schema: text, description: 'The error between the gateway and the bank (RFC 9209).' },
  Link: {
    schema: text,
    description:
      'The explanation of the error code, with rel="help" (RFC 8288), if `listen.errorPageUrl` is set.',
  },
  'X-Accel-Buffering': {
    schema: { type: 'string', enum: ['no'] },
    description: 'Of an event stream: proxies forward each event at once.',
  },
  Allow: { schema: text, description: 'The methods that the path offers.' },
} as const satisfies Readonly<Record<string, Header>>;

export type ResponseHeader = keyof typeof responseHeaders;

export const headersNamed = (...names: readonly ResponseHeader[]) =>
  Object.fromEntries(names.map((name) => [name, ref('headers', name)]));
