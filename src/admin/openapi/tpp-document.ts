/** The OpenAPI description of the public listener, with types for all headers and bodies: what the developer of a TPP system needs. */

import { stringify } from 'yaml';
import { operations } from '../../pis/operations.ts';
import { type ErrorDefinition, errorTable } from '../../request/errors.ts';
import { lookUpPath } from './look-up-path.ts';
import {
  laneDescriptions,
  pathParameters,
  paymentComponents,
  ref,
  statusesOf,
  streamExample,
  summaries,
} from './payment-paths.ts';
import { standardRef, standardSchemas } from './standard-schemas.ts';
import {
  headerParameterComponents,
  headerParameters,
  headersNamed,
  type ResponseHeader,
  responseHeaders,
} from './tpp-headers.ts';
import { webhookSchemas, webhooks } from './webhooks.ts';

type Row = (typeof operations)[number];

export const tppOpenapiYaml = (): string =>
  stringify(describeTppApi(), { aliasDuplicateObjects: false, lineWidth: 110 });

const gateway = { default: 'http://127.0.0.1:8080', description: 'listen.publicUrl' };

function describeTppApi() {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Penstock for TPP systems',
      version: '1',
      summary: 'Initiate payments at a bank, through the gateway.',
      description:
        'The payment initiation service of NextGenPSD2 XS2A 1.3.6 and 1.3.11, what the gateway adds to it, and the webhooks that it sends. One ' +
        'schema describes both versions: it requires what both require, and says which fields only one of them has. Banks add fields of ' +
        'their own, and may use other codes: accept them. The gateway forwards bodies byte for byte, and does not check answers by these ' +
        'schemas.\n\nThe schemas of bodies and headers are written from the OpenAPI files of the NextGenPSD2 XS2A Framework, The Berlin Group, ' +
        '[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/); they are changed: both versions are in one schema, and patterns are anchored.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: '{gateway}/{segment}/v1',
        variables: { gateway, segment: { default: 'berlingroup', description: 'standard.segment' } },
      },
    ],
    security: [
      {},
      { apiKey: [] },
      { clientCertificate: [] },
      { bankToken: [] },
      { apiKey: [], bankToken: [] },
      { clientCertificate: [], bankToken: [] },
    ],
    tags: [
      { name: 'payments', description: 'The payment initiation service, and its webhooks.' },
      { name: 'requests', description: 'Look up your own requests, if the operators allow it.' },
    ],
    paths: { ...paymentPaths(), ...lookUpPath([{ url: '{gateway}', variables: { gateway } }]) },
    webhooks,
    components: {
      securitySchemes: {
        ...paymentComponents.securitySchemes,
        clientCertificate: {
          type: 'mutualTLS',
          description: 'A TLS certificate that identifies the client, if the operators have configured it.',
        },
        bankToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The access token of the bank, if it needs one. The gateway forwards it unchanged.',
        },
      },
      parameters: { ...pathParameterComponents(), ...headerParameterComponents() },
      headers: responseHeaders,
      responses: { ...errorResponses(), ...otherResponses },
      schemas: { ...standardSchemas(), ...gatewaySchemas, ...webhookSchemas },
    },
  };
}

function paymentPaths() {
  const shapes = [...new Set(operations.map(({ shape }) => shape))];
  return Object.fromEntries(
    shapes.map((shape) => [
      shape,
      {
        parameters: pathParameters(shape),
        ...Object.fromEntries(
          operations
            .filter((row) => row.shape === shape)
            .map((row) => [row.method.toLowerCase(), describeOperation(row)]),
        ),
      },
    ]),
  );
}

function describeOperation(row: Row) {
  const { name, isOptional, lane } = row;
  const condition = isOptional ? `Only if \`standard.alsoOffer\` names ${name}. ` : '';
  const requestBody = requestBodies[name];
  return {
    operationId: name,
    tags: ['payments'],
    summary: summaries[name].summary,
    description: `${condition}${laneDescriptions[lane]}`,
    parameters: headerParameters(row),
    ...(requestBody && { requestBody }),
    responses: {
      ...successes(row),
      '3XX': ref('responses', 'Redirected'),
      ...Object.fromEntries(statusesOf(row).map((status) => [status, ref('responses', `Error${status}`)])),
      '4XX': ref('responses', 'RefusedByBank'),
      '5XX': ref('responses', 'FailedAtBank'),
    },
  };
}

const json = (...schemas: readonly object[]) => ({
  'application/json': { schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas } },
});
const xml = (description: string) => ({ 'application/xml': { schema: { type: 'string', description } } });

const paymentExample = {
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE89370400440532013000' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
  remittanceInformationUnstructured: 'Ref Number Merchant',
};

const requestBodies: Readonly<Partial<Record<Row['name'], object>>> = {
  initiatePayment: {
    required: true,
    description:
      'The service decides which JSON applies: `payments`, `bulk-payments` or `periodic-payments`. Products that begin with `pain.001-` are XML.',
    content: {
      'application/json': {
        schema: {
          anyOf: [standardRef('singlePayment'), standardRef('bulkPayment'), standardRef('periodicPayment')],
        },
        example: paymentExample,
      },
      ...xml('pain.001'),
      'multipart/form-data': {
        schema: {
          type: 'object',
          description: 'A periodic payment in XML.',
          required: ['xml_sct', 'json_standingorderType'],
          properties: {
            xml_sct: { type: 'string', contentMediaType: 'application/xml', description: 'pain.001' },
            json_standingorderType: standardRef('standingOrder'),
          },
        },
        encoding: {
          xml_sct: { contentType: 'application/xml' },
          json_standingorderType: { contentType: 'application/json' },
        },
      },
    },
  },
  startAuthorisation: { content: json(standardRef('authorisationStart')) },
  updatePsuData: { required: true, content: json(standardRef('authorisationUpdate')) },
  updatePayment: {
    description: 'Not in the standard: the bank defines it.',
    content: json({ type: 'object', additionalProperties: true }),
  },
};

const everyHeader = [
  'X-Request-ID',
  'Penstock-Environment',
  'Cache-Control',
  'RateLimit',
  'RateLimit-Policy',
] as const;
const writeHeaders = [...everyHeader, 'Idempotent-Replayed', 'Penstock-Outcome'] as const;
const scaHeaders = [
  ...writeHeaders,
  'ASPSP-SCA-Approach',
  'ASPSP-Notification-Support',
  'ASPSP-Notification-Content',
] as const;
const statusHeaders = [...everyHeader, 'Cache-Status', 'Age', 'ETag', 'Preference-Applied'] as const;

const answer = (description: string, headers: readonly ResponseHeader[], content?: object) => ({
  description,
  headers: headersNamed(...headers),
  ...(content && { content }),
});

/** The successes of the standard, and those of banks that deviate in the status only. */
function successes({ name }: Row): Readonly<Record<string, object>> {
  switch (name) {
    case 'initiatePayment': {
      const content = json(standardRef('paymentInitiated'));
      const headers = ['Location', ...scaHeaders] as const;
      return {
        201: answer('The bank has accepted the payment, which may need an authorisation.', headers, content),
        '2XX': answer('As 201, at banks that use another status.', headers, content),
      };
    }
    case 'getPayment':
      return read('The payment.', { ...json(standardRef('shownPayment')), ...xml('pain.001') });
    case 'getPeriodicPayment':
      return read('The periodic payment.', {
        ...json(standardRef('shownPeriodicPayment')),
        ...xml('pain.001'),
        'multipart/form-data': {
          schema: {
            type: 'object',
            properties: {
              xml_sct: { type: 'string', contentMediaType: 'application/xml', description: 'pain.001' },
              json_standingorderType: standardRef('shownStandingOrder'),
            },
          },
        },
      });
    case 'getBulkPayment':
      return read('The bulk payment.', { ...json(standardRef('shownBulkPayment')), ...xml('pain.001') });
    case 'getPaymentStatus':
      return {
        200: answer(
          'The status of the payment, as the bank sent it.',
          [...statusHeaders, 'X-Accel-Buffering'],
          {
            ...json(standardRef('paymentStatus')),
            ...xml('pain.002'),
            'text/event-stream': { schema: { type: 'string' }, example: streamExample },
          },
        ),
        204: answer('`Last-Event-ID` is the event of a final status: do not connect again.', everyHeader),
        304: answer('The status has a tag of `If-None-Match`.', statusHeaders),
      };
    case 'cancelPayment': {
      const content = json(standardRef('cancellationStarted'));
      return {
        202: answer(
          'The bank has started the cancellation: the payer must authorise it.',
          scaHeaders,
          content,
        ),
        204: answer('The payment is cancelled.', writeHeaders),
        '2XX': answer('As 202, at banks that use another status.', scaHeaders, content),
      };
    }
    case 'startAuthorisation': {
      const content = json(standardRef('authorisationStarted'));
      const headers = ['Location', ...scaHeaders] as const;
      return {
        201: answer('The authorisation has started.', headers, content),
        '2XX': answer('As 201, at banks that use another status.', headers, content),
      };
    }
    case 'listAuthorisations':
      return read('The ids of the authorisations.', json(standardRef('authorisationList')));
    case 'getAuthorisation':
      return read('The status of the authorisation.', json(standardRef('authorisation')));
    case 'updatePsuData': {
      const content = json(standardRef('authorisationUpdated'));
      return {
        200: answer('The bank has processed this step of the authorisation.', scaHeaders, content),
        '2XX': answer('As 200, at banks that use another status.', scaHeaders, content),
      };
    }
    case 'updatePayment': {
      const content = json({ type: 'object', additionalProperties: true });
      return { 200: answer('The bank has updated the payment.', scaHeaders, content) };
    }
  }
}

const read = (description: string, content: object) => ({ 200: answer(description, everyHeader, content) });

const errorHeaders = [
  ...everyHeader,
  'Cache-Status',
  'Penstock-Outcome',
  'Idempotent-Replayed',
  'Retry-After',
  'Proxy-Status',
  'Link',
] as const;

const errorContentOf = (messages: object) => ({
  ...json(messages),
  'application/problem+json': {
    schema: { anyOf: [ref('schemas', 'GatewayProblem'), standardRef('problem')] },
  },
});

const errorContent = errorContentOf(standardRef('tppMessagesError'));
/** Only DUPLICATE_IN_DOUBT names a payment. */
const conflictContent = errorContentOf({
  allOf: [standardRef('tppMessagesError'), ref('schemas', 'ExecutedBefore')],
});

/** One response for each status of the gateway. The bank may use the same status. */
function errorResponses() {
  const rows: readonly (readonly [string, ErrorDefinition])[] = Object.entries(errorTable);
  const byStatus = Map.groupBy(rows, ([, { status }]) => status);
  return Object.fromEntries(
    [...byStatus].map(([status, errors]) => {
      const codes = errors.map(([code]) => code);
      return [
        `Error${status}`,
        {
          description: `An error of the gateway, with \`Penstock-Error\` (${codes.join(', ')}), or of the bank. The \`text\` of the gateway’s message begins with the code.`,
          headers: {
            ...headersNamed(...errorHeaders, ...(status === 405 ? (['Allow'] as const) : [])),
            'Penstock-Error': {
              ...responseHeaders['Penstock-Error'],
              schema: { type: 'string', enum: codes },
            },
          },
          content: status === 409 ? conflictContent : errorContent,
        },
      ];
    }),
  );
}

const otherResponses = {
  Redirected: answer(
    'A redirect of the bank. After a write, it leaves open whether the bank has executed the request. Do not follow it.',
    [...writeHeaders, 'Cache-Status', 'Location'],
    json({ type: 'object', additionalProperties: true }),
  ),
  RefusedByBank: answer('An error of the bank.', [...errorHeaders, 'Penstock-Error'], errorContent),
  FailedAtBank: answer(
    'An error of the bank. It leaves open whether the bank has executed a write.',
    [...errorHeaders, 'Penstock-Error'],
    errorContent,
  ),
};

const executedPayment = {
  paymentId: {
    type: 'string',
    description:
      'Of DUPLICATE_IN_DOUBT, if an operator knows that the bank has executed the first request: the payment that it has made, or concerns.',
  },
  _links: standardRef('links'),
};

const gatewaySchemas = {
  ExecutedBefore: { type: 'object', properties: executedPayment },
  GatewayErrorCode: {
    type: 'string',
    description: 'The codes of the errors that the gateway generates: docs/errors.md.',
    enum: Object.keys(errorTable),
  },
  GatewayProblem: {
    type: 'object',
    description: 'An error of the gateway, if `Accept` prefers `application/problem+json`.',
    required: ['type', 'title', 'detail', 'code'],
    properties: {
      type: { type: 'string', enum: Object.keys(errorTable).map((code) => `urn:penstock:error:${code}`) },
      title: { type: 'string', maxLength: 70 },
      detail: { type: 'string', maxLength: 500, description: 'What happened, and what to do next.' },
      code: {
        type: 'string',
        description: 'The code of the standard.',
        enum: tppCodes(),
      },
      ...executedPayment,
    },
  },
};

/** A client certificate that is missing has another code than the table (`CLIENT_UNKNOWN`). */
function tppCodes(): readonly string[] {
  return [...new Set([...Object.values(errorTable).map(({ tppCode }) => tppCode), 'CERTIFICATE_MISSING'])];
}

/** Values that the gateway offers by default. */
function pathParameterComponents() {
  const { parameters } = paymentComponents;
  return {
    'payment-service': withValues(
      parameters['payment-service'],
      ['payments', 'bulk-payments', 'periodic-payments'],
      'standard.paymentServices',
    ),
    'payment-product': {
      ...parameters['payment-product'],
      description:
        'A product of the bank, such as `sepa-credit-transfers`, `instant-sepa-credit-transfers`, `target-2-payments`, ' +
        '`cross-border-credit-transfers`, or one of them with `pain.001-` before it.',
    },
    paymentId: { ...parameters.paymentId, description: 'The id that the bank has given the payment.' },
    'payment-authorisation': withValues(
      parameters['payment-authorisation'],
      ['authorisations', 'cancellation-authorisations'],
      'standard.authorisationTypes',
    ),
    'authorisation-id': {
      ...parameters['authorisation-id'],
      description: 'The id that the bank has given the authorisation.',
    },
  };
}

const withValues = (parameter: object, values: readonly string[], setting: string) => ({
  ...parameter,
  description: `Other values are possible if the operators have set \`${setting}\`.`,
  schema: { type: 'string', enum: values },
});
