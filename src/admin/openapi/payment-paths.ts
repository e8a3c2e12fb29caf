/** How OpenAPI describes the payment side: made from the table of operations and the table of errors. */

import { operations } from '../../pis/operations.ts';
import { type ErrorCode, type ErrorDefinition, errorTable } from '../../request/errors.ts';

type Row = (typeof operations)[number];

const ref = (section: string, name: string) => ({ $ref: `#/components/${section}/${name}` });

/** The paths of the eight operations, as they stand behind `/<segment>/v1`. */
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

const summaries: Readonly<Record<Row['name'], { readonly summary: string; readonly status: number }>> = {
  initiatePayment: { summary: 'Initiate a payment', status: 201 },
  getPayment: { summary: 'Read a payment, or the content of a bulk payment', status: 200 },
  getPeriodicPayment: { summary: 'Read a periodic payment', status: 200 },
  getPaymentStatus: { summary: 'Read the status of a payment', status: 200 },
  cancelPayment: { summary: 'Cancel a payment, or begin to', status: 204 },
  startAuthorisation: { summary: 'Start an authorisation of a payment or of its cancellation', status: 201 },
  listAuthorisations: { summary: 'List the authorisations', status: 200 },
  getAuthorisation: { summary: 'Read how far an authorisation is', status: 200 },
};

function describeOperation(row: Row) {
  const { summary, status } = summaries[row.name];
  const errors = statusesOf(row).map((code) => [String(code), ref('responses', `Error${code}`)]);
  return {
    operationId: row.name,
    tags: ['payments'],
    summary,
    description: `${laneDescriptions[row.lane]} Any other answer of the bank passes through with its status, body and fields.`,
    security: [{}, { apiKey: [] }],
    parameters: [ref('parameters', 'X-Request-ID'), ref('parameters', 'Penstock-Environment')],
    ...(row.method === 'POST' && { requestBody: ref('requestBodies', 'Opaque') }),
    responses: {
      [status]: ref('responses', status === 204 ? 'Done' : 'BankAnswer'),
      ...Object.fromEntries(errors),
    },
  };
}

const laneDescriptions = {
  write:
    'One X-Request-ID has one effect at the bank: a repeat gets the first answer (Idempotent-Replayed: true).',
  read: 'Asked of the bank each time.',
  status:
    'Answered from a cache that all instances share (Cache-Status, Age); Cache-Control: no-cache asks the bank.',
} as const;

/** Which errors an operation can meet: duplicates are a matter of writes, the cache of status reads. */
function codesOf(row: Row): readonly ErrorCode[] {
  return errorCodes.filter((code) => {
    if (code.startsWith('DUPLICATE_')) return row.lane === 'write';
    return code !== 'NOT_CACHED' || row.readsStatus;
  });
}

const statusesOf = (row: Row) =>
  [...new Set(codesOf(row).map((code) => errorTable[code].status))].toSorted((one, other) => one - other);

/** The keys are all there are: nothing can be added to the table at run time. */
const errorCodes = Object.keys(errorTable) as ErrorCode[];

const pathParameters = (shape: string) =>
  [...shape.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => ref('parameters', name));

const pathParameter = (name: string, pattern: string, examples: readonly string[]) => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', pattern, maxLength: 256 },
  example: examples[0],
});
const segmentPattern = '^[A-Za-z0-9._~-]+$';
const idPattern = '^[A-Za-z0-9._~=:@+,!$*-]+$';

const header = (description: string, schema: object = { type: 'string' }) => ({ description, schema });

/** What the paths refer to. */
export const paymentComponents = {
  securitySchemes: {
    apiKey: {
      type: 'apiKey',
      in: 'header',
      name: 'X-API-Key',
      description: 'Where clients are configured and known by key. Others show a certificate.',
    },
  },
  parameters: {
    'payment-service': pathParameter('payment-service', segmentPattern, ['payments']),
    'payment-product': pathParameter('payment-product', segmentPattern, ['sepa-credit-transfers']),
    paymentId: pathParameter('paymentId', idPattern, ['1234-wertiq-983']),
    'payment-authorisation': pathParameter('payment-authorisation', segmentPattern, ['authorisations']),
    'authorisation-id': pathParameter('authorisation-id', idPattern, ['123auth456']),
    'X-Request-ID': {
      name: 'X-Request-ID',
      in: 'header',
      required: true,
      description: 'Names the request. The same one again means the same request.',
      schema: { type: 'string', format: 'uuid' },
    },
    'Penstock-Environment': {
      name: 'Penstock-Environment',
      in: 'header',
      description: 'The environment to use, if the client may choose.',
      schema: { type: 'string' },
    },
  },
  headers: {
    'X-Request-ID': header('The request’s own.', { type: 'string', format: 'uuid' }),
    'Penstock-Environment': header('Which environment of the bank it was.'),
    'Penstock-Error': header('The code of an error that the gateway itself made: docs/errors.md.'),
    'Cache-Status': header('Where the status of a payment comes from (RFC 9211).'),
    'Idempotent-Replayed': header('`true` if it is the answer to an earlier request of the same id.'),
    'Proxy-Status': header('What went wrong on the way to the bank (RFC 9209).'),
  },
  requestBodies: {
    Opaque: {
      description: 'Passed on byte for byte; what it says is between the TPP and the bank.',
      content: {
        'application/json': { schema: { type: 'object' } },
        'application/xml': { schema: { type: 'string' } },
        'multipart/form-data': { schema: { type: 'object' } },
      },
    },
  },
  responses: {
    BankAnswer: {
      description: 'The bank’s answer; links into its API lead through the gateway.',
      headers: headersNamed('X-Request-ID', 'Penstock-Environment', 'Cache-Status', 'Idempotent-Replayed'),
      content: {
        'application/json': { schema: { type: 'object' } },
        'application/xml': { schema: { type: 'string' } },
      },
    },
    Done: {
      description: 'The bank has done it, and says nothing more.',
      headers: headersNamed('X-Request-ID', 'Penstock-Environment', 'Idempotent-Replayed'),
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
      },
    },
  },
};

function headersNamed(...names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, ref('headers', name)]));
}

/** One for each status, with the codes that tell equal statuses apart. */
function errorResponses() {
  const rows: readonly (readonly [string, ErrorDefinition])[] = Object.entries(errorTable);
  const statuses = [...new Set(rows.map(([, { status }]) => status))].toSorted((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = rows.filter(([, kind]) => kind.status === status).map(([code]) => code);
      const schema = ref('schemas', 'TppMessages');
      return [
        `Error${status}`,
        {
          description: `The gateway itself says: ${codes.join(', ')}.`,
          headers: headersNamed('X-Request-ID', 'Penstock-Error', 'Proxy-Status'),
          content: {
            'application/json': { schema },
            'application/problem+json': { schema: { type: 'object' } },
          },
        },
      ];
    }),
  );
}
