/** Describes the path with which TPPs look up their own requests, for the OpenAPI description. */

import { errorTable } from '../../request/errors.ts';
import { lookUpReport } from '../../self-service/look-up-report.ts';
import { jsonSchema } from './json-schema.ts';
import { ref } from './payment-paths.ts';
import { headersNamed } from './tpp-headers.ts';

const codes = [
  'REQUEST_ID_INVALID',
  'CLIENT_UNKNOWN',
  'REQUEST_UNKNOWN',
  'METHOD_NOT_ALLOWED',
  'QUOTA_EXCEEDED',
  'STATE_UNAVAILABLE',
  'REQUEST_TIMEOUT',
  'EXPECTATION_FAILED',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
] as const;

/** @param servers without the segment of the standard */
export const lookUpPath = (servers: readonly object[]) => ({
  '/requests/{xRequestId}': {
    servers,
    parameters: [
      {
        name: 'xRequestId',
        in: 'path',
        required: true,
        description: 'The X-Request-ID of the requests to look up.',
        schema: { type: 'string', format: 'uuid' },
      },
    ],
    get: {
      operationId: 'lookUpRequest',
      tags: ['requests'],
      summary: 'Look up your own requests with an X-Request-ID: what happened, and what to do',
      description:
        'Exists only if the operators have set `requests.selfService`. Lists the requests of your tenant, in environments that the client ' +
        'may use. The gateway answers from its records; the bank is not asked. A request is listed a second after its response. HEAD is ' +
        'allowed as well.',
      security: [{}, { apiKey: [] }],
      responses: {
        200: {
          description: 'The requests with this X-Request-ID.',
          headers: headersNamed('X-Request-ID', 'Cache-Control'),
          content: { 'application/json': { schema: jsonSchema(lookUpReport) } },
        },
        ...Object.fromEntries(
          codes.map((code) => {
            const { status } = errorTable[code];
            return [status, ref('responses', `Error${status}`)];
          }),
        ),
      },
    },
  },
});
