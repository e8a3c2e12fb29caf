/** Generates the OpenAPI paths of the public API from the table of operations and the table of errors. */

import { mayHaveBody, operations } from '../../pis/operations.ts';
import { type ErrorCode, type ErrorDefinition, errorTable } from '../../request/errors.ts';

type Row = (typeof operations)[number];

export const ref = (section: string, name: string) => ({ $ref: `#/components/${section}/${name}` });

/** The paths of the eight operations, relative to `/<segment>/v1`. */
export function paymentPaths() {
  const shapes = [...new Set(operations.map(({ shape }) => shape))];
  const methodsOf = (shape: string) =>
    operations
      .filter((row) => row.shape === shape)
      .map((row) => [row.method.toLowerCase(), describeOperation(row)]);
  return Object.fromEntries(
    shapes.map((shape) => [
      shape,
      { parameters: pathParameters(shape), ...Object.fromEntries(methodsOf(shape)) },
    ]),
  );
}

export const summaries: Readonly<Record<Row['name'], { readonly summary: string; readonly status: number }>> =
  {
    initiatePayment: { summary: 'Initiate a payment', status: 201 },
    getPayment: { summary: 'Read a payment, or the content of a bulk payment', status: 200 },
    getPeriodicPayment: { summary: 'Read a periodic payment', status: 200 },
    getPaymentStatus: { summary: 'Read the status of a payment', status: 200 },
    cancelPayment: { summary: 'Cancel a payment, or start its cancellation', status: 204 },
    startAuthorisation: {
      summary: 'Start an authorisation of a payment or of its cancellation',
      status: 201,
    },
    listAuthorisations: { summary: 'List the authorisations', status: 200 },
    getAuthorisation: { summary: 'Read the status of an authorisation', status: 200 },
    updatePsuData: {
      summary: "Send the payer's password, choice of a method or TAN for an authorisation",
      status: 200,
    },
    updatePayment: { summary: 'Update a payment, at banks that need it before its execution', status: 200 },
    getBulkPayment: { summary: 'Read a bulk payment', status: 200 },
  };

function describeOperation(row: Row) {
  const { summary, status } = summaries[row.name];
  const errors = statusesOf(row).map((code) => [String(code), ref('responses', `Error${code}`)]);
  return {
    operationId: row.name,
    tags: ['payments'],
    summary,
    description: `${row.isOptional ? `Only if \`standard.alsoOffer\` names ${row.name}. ` : ''}${laneDescriptions[row.lane]} Every other response of the bank is forwarded with its status, body and headers.`,
    security: [{}, { apiKey: [] }],
    parameters: [
      ref('parameters', 'X-Request-ID'),
      ref('parameters', 'Penstock-Environment'),
      ...(row.readsStatus
        ? [
            ref('parameters', 'If-None-Match'),
            ref('parameters', 'Prefer'),
            ref('parameters', 'Last-Event-ID'),
          ]
        : []),
      ...(row.lane === 'write'
        ? [ref('parameters', 'TPP-Notification-URI'), ref('parameters', 'TPP-Notification-Content-Preferred')]
        : []),
    ],
    ...(mayHaveBody(row) && { requestBody: ref('requestBodies', 'Opaque') }),
    responses: {
      [status]: ref('responses', responseOf(row, status)),
      ...(row.readsStatus && { 204: ref('responses', 'EndOfStream') }),
      ...(row.readsStatus && { 304: ref('responses', 'NotModified') }),
      ...Object.fromEntries(errors),
    },
  };
}

function responseOf({ readsStatus, lane }: Row, status: number): string {
  if (status === 204) return 'NoContent';
  if (lane === 'write') return 'WriteResponse';
  return readsStatus ? 'StatusResponse' : 'BankResponse';
}

export const laneDescriptions = {
  write: 'Idempotent: a repeat of the X-Request-ID gets the first response (Idempotent-Replayed: true).',
  read: 'Not cached: every request goes to the bank.',
  status:
    'Served from a cache that all instances share (Cache-Status, Age). Cache-Control: no-cache bypasses it. With Prefer: wait, or as text/event-stream, it reports changes: docs/callers/payment-status.md.',
} as const;

/** The errors that an operation can return: duplicates exist for writes only, the cache for status reads only. */
function codesOf(row: Row): readonly ErrorCode[] {
  return errorCodes.filter((code) => {
    if (code === 'REQUEST_UNKNOWN') return false; // of look-ups
    if (code.startsWith('DUPLICATE_')) return row.lane === 'write';
    return code !== 'NOT_CACHED' || row.readsStatus;
  });
}

export const statusesOf = (row: Row) =>
  [...new Set(codesOf(row).map((code) => errorTable[code].status))].toSorted((one, other) => one - other);

const errorCodes = Object.keys(errorTable) as ErrorCode[]; // `keys` widens them to text

export const pathParameters = (shape: string) =>
  [...shape.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => ref('parameters', name));

const pathParameter = (name: string, pattern: string, example: string) => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', pattern, maxLength: 256 },
  example,
});
const segmentPattern = '^[A-Za-z0-9._~-]+$';
const idPattern = '^[A-Za-z0-9._~=:@+,!$*-]+$';

const header = (description: string, schema: object = { type: 'string' }) => ({ description, schema });

const statusHeaders = [
  'X-Request-ID',
  'Penstock-Environment',
  'Cache-Status',
  'ETag',
  'Preference-Applied',
] as const;

const writeHeaders = [
  'X-Request-ID',
  'Penstock-Environment',
  'Idempotent-Replayed',
  'Penstock-Outcome',
  'ASPSP-Notification-Support',
  'ASPSP-Notification-Content',
] as const;

export const streamExample = `event: status
id: W/"penstock-Tmz3Zt0B4BgOqCw8RKPyDA"
data: {"paymentId":"1234-wertiq-983","transactionStatus":"ACTC","final":false,"body":{"transactionStatus":"ACTC"}}
`;

/** The components that the paths refer to. */
export const paymentComponents = {
  securitySchemes: {
    apiKey: {
      type: 'apiKey',
      in: 'header',
      name: 'X-API-Key',
      description: 'Required if clients are configured, unless a client certificate identifies the client.',
    },
  },
  parameters: {
    'payment-service': pathParameter('payment-service', segmentPattern, 'payments'),
    'payment-product': pathParameter('payment-product', segmentPattern, 'sepa-credit-transfers'),
    paymentId: pathParameter('paymentId', idPattern, '1234-wertiq-983'),
    'payment-authorisation': pathParameter('payment-authorisation', segmentPattern, 'authorisations'),
    'authorisation-id': pathParameter('authorisation-id', idPattern, '123auth456'),
    'X-Request-ID': {
      name: 'X-Request-ID',
      in: 'header',
      required: true,
      description: 'Idempotency key: the same id marks a repeat of the same request.',
      schema: { type: 'string', format: 'uuid' },
    },
    'Penstock-Environment': {
      name: 'Penstock-Environment',
      in: 'header',
      description: 'The environment to use; must be one that the client is allowed to use.',
      schema: { type: 'string' },
    },
    'If-None-Match': {
      name: 'If-None-Match',
      in: 'header',
      description:
        'Tags of earlier responses. If all of them are tags of the gateway, the response is 304 while the status has one of them.',
      schema: { type: 'string' },
    },
    Prefer: {
      name: 'Prefer',
      in: 'header',
      description:
        '`wait=N`: the response comes when the status has changed, or after N seconds, at most `notifications.maxWait`.',
      schema: { type: 'string' },
      example: 'wait=50',
    },
    'Last-Event-ID': {
      name: 'Last-Event-ID',
      in: 'header',
      description: 'With `Accept: text/event-stream`: the id of the last event that was received.',
      schema: { type: 'string' },
    },
    'TPP-Notification-URI': {
      name: 'TPP-Notification-URI',
      in: 'header',
      description:
        'Where the gateway sends the status of the payment when it changes: a URL that the operators allow for your client. For clients without ' +
        'webhooks, this and the next field go to the bank: docs/callers/webhooks.md.',
      schema: { type: 'string', format: 'uri' },
      example: 'https://tpp.example/psd2/payments',
    },
    'TPP-Notification-Content-Preferred': {
      name: 'TPP-Notification-Content-Preferred',
      in: 'header',
      description:
        '`PROCESS`, the default: each change of the status. `LAST`: the last status only. `SCA`: each change of the status of an authorisation.',
      schema: { type: 'string' },
      example: 'status=SCA,PROCESS',
    },
  },
  headers: {
    'Cache-Control': header('`no-store`, unless the bank sends its own.'),
    'X-Request-ID': header('The id of the request.', { type: 'string', format: 'uuid' }),
    'Penstock-Environment': header('The environment of the bank that handled the request.'),
    'Penstock-Error': header('The code of an error that the gateway generated: docs/errors.md.'),
    Link: header(
      'The explanation of the error code, with rel="help" (RFC 8288), if `listen.errorPageUrl` is set.',
    ),
    ETag: header('The tag of the status, unless the bank sends its own: docs/callers/payment-status.md.'),
    'Preference-Applied': header('`wait=N` if the read has waited, or would have waited, for N seconds.'),
    'ASPSP-Notification-Support': header(
      '`true` if the gateway has stored the subscription; `false` if it sends nothing. Missing if your client has no webhooks.',
      { type: 'string', enum: ['true', 'false'] },
    ),
    'ASPSP-Notification-Content': header('What the gateway sends, such as `status=PROCESS`.'),
    'Cache-Status': header('Whether the status comes from the cache (RFC 9211).'),
    'Idempotent-Replayed': header(
      '`true` if this is the stored response to an earlier request with the same id; a long response is stored only in part.',
    ),
    'Penstock-Outcome': header(
      '`unknown` if the answer of the bank leaves open whether it has executed the request; a repeat gets DUPLICATE_IN_DOUBT. Status and body are the bank’s.',
      { type: 'string', enum: ['unknown'] },
    ),
    'Proxy-Status': header('The error between the gateway and the bank (RFC 9209).'),
  },
  requestBodies: {
    Opaque: {
      description: 'Forwarded byte for byte; the standard and the bank define its content.',
      content: {
        'application/json': { schema: { type: 'object' } },
        'application/xml': { schema: { type: 'string' } },
        'multipart/form-data': { schema: { type: 'object' } },
      },
    },
  },
  responses: {
    BankResponse: {
      description: 'The bank’s response; links to its API are rewritten to the gateway.',
      headers: headersNamed('X-Request-ID', 'Penstock-Environment'),
      content: {
        'application/json': { schema: { type: 'object' } },
        'application/xml': { schema: { type: 'string' } },
      },
    },
    WriteResponse: {
      description: 'The bank’s response; links to its API are rewritten to the gateway.',
      headers: headersNamed(...writeHeaders),
      content: {
        'application/json': { schema: { type: 'object' } },
        'application/xml': { schema: { type: 'string' } },
      },
    },
    StatusResponse: {
      description: 'The status of the payment, as the bank sent it.',
      headers: headersNamed(...statusHeaders),
      content: {
        'application/json': { schema: { type: 'object' } },
        'application/xml': { schema: { type: 'string' } },
        'text/event-stream': { schema: { type: 'string' }, example: streamExample },
      },
    },
    EndOfStream: {
      description: 'Last-Event-ID is the event of a final status: do not connect again.',
      headers: headersNamed('X-Request-ID', 'Penstock-Environment'),
    },
    NotModified: {
      description: 'The status has a tag of If-None-Match.',
      headers: headersNamed(...statusHeaders),
    },
    NoContent: {
      description: 'Done; the bank sent no content.',
      headers: headersNamed(...writeHeaders),
    },
    ...errorResponses(),
  },
  schemas: {
    TppMessages: {
      type: 'object',
      required: ['tppMessages'],
      properties: {
        tppMessages: {
          type: 'array',
          items: {
            type: 'object',
            required: ['category', 'code'],
            properties: {
              category: { enum: ['ERROR'] },
              code: { enum: [...new Set(Object.values(errorTable).map(({ tppCode }) => tppCode))] },
              text: { type: 'string' },
              path: { type: 'string' },
            },
          },
        },
        paymentId: {
          type: 'string',
          description:
            'Of DUPLICATE_IN_DOUBT, if an operator knows that the bank has executed the first request. `_links` has its address.',
        },
        _links: { type: 'object' },
      },
    },
  },
};

function headersNamed(...names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, ref('headers', name)]));
}

/** One response for each status, with the codes of all errors that have it. */
function errorResponses() {
  const rows: readonly (readonly [string, ErrorDefinition])[] = Object.entries(errorTable);
  const statuses = [...new Set(rows.map(([, { status }]) => status))].toSorted((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = rows.filter(([, error]) => error.status === status).map(([code]) => code);
      const schema = ref('schemas', 'TppMessages');
      return [
        `Error${status}`,
        {
          description: `Generated by the gateway: ${codes.join(', ')}.`,
          headers: headersNamed('X-Request-ID', 'Penstock-Error', 'Link', 'Proxy-Status'),
          content: {
            'application/json': { schema },
            'application/problem+json': { schema: { type: 'object' } },
          },
        },
      ];
    }),
  );
}
