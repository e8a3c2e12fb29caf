/** How OpenAPI describes the operators' side: a row for each route of the admin application. */

import { z } from 'zod';
import { holdRequest, resolutionRequest, switchRequest } from '../admin-api.ts';

interface Row {
  readonly method: 'get' | 'put' | 'post' | 'delete';
  readonly path: string;
  readonly summary: string;
  /** Whether it wants no token. */
  readonly open?: true;
  readonly body?: z.ZodType;
  readonly query?: readonly string[];
  /** What is answered when all is well; 200 and JSON if nothing is said. */
  readonly answer?: { readonly status?: number; readonly type?: string };
  /** What else is answered, by status. */
  readonly or?: Readonly<Record<number, string>>;
}

const faulty = { 400: 'The order is faulty: all that is wrong with it.' };
const noState = { 503: 'The shared state is out of reach.' };

const rows: readonly Row[] = [
  { method: 'get', path: '/health/live', summary: 'Does the process run?', open: true },
  {
    method: 'get',
    path: '/health/ready',
    summary: 'Can it serve? The bank is not asked.',
    open: true,
    or: { 503: 'It cannot, and says why.' },
  },
  {
    method: 'get',
    path: '/metrics',
    summary: 'The metrics, for Prometheus',
    open: true,
    answer: { type: 'text/plain' },
  },
  {
    method: 'get',
    path: '/openapi.yaml',
    summary: 'This description',
    open: true,
    answer: { type: 'application/yaml' },
  },
  { method: 'get', path: '/api/environments', summary: 'The environments, and which one is active' },
  {
    method: 'put',
    path: '/api/environments/active',
    summary: 'Send new payments elsewhere',
    body: switchRequest,
    or: { ...faulty, 409: 'Refused, with the report of the pre-flight.', ...noState },
  },
  {
    method: 'post',
    path: '/api/environments/{name}/preflight',
    summary: 'Try an environment out, without switching',
    or: { 404: 'There is no environment of this name.' },
  },
  {
    method: 'get',
    path: '/api/events',
    summary: 'What the console shows, as it changes',
    answer: { type: 'text/event-stream' },
    or: { 503: 'This instance is stopping, or a hundred watch it already.' },
  },
  {
    method: 'get',
    path: '/api/decisions/{requestId}',
    summary: 'What this instance did with a request',
    or: { 404: 'It remembers none of this X-Request-ID.' },
  },
  { method: 'get', path: '/api/circuits', summary: 'The circuits, one for each environment and lane' },
  {
    method: 'put',
    path: '/api/circuits/{environment}/{lane}',
    body: holdRequest,
    summary: 'Hold a circuit open or closed, or let go of it',
    or: { ...faulty, 404: 'There is no such circuit.', ...noState },
  },
  {
    method: 'get',
    path: '/api/in-doubt',
    summary: 'What the bank may have done or not',
    or: noState,
  },
  {
    method: 'post',
    path: '/api/in-doubt/{id}',
    summary: 'Say what the bank has told of it',
    body: resolutionRequest,
    or: {
      ...faulty,
      404: 'Nothing is in doubt under this id.',
      409: 'The bank may still act on it.',
      ...noState,
    },
  },
  { method: 'get', path: '/api/audit', summary: 'The newest records of the audit log', or: noState },
  { method: 'get', path: '/api/audit/verify', summary: 'Is the chain of the audit log whole?', or: noState },
  {
    method: 'delete',
    path: '/api/status-cache',
    summary: 'Forget what is kept of a payment, or of all',
    query: ['environment', 'payment'],
    answer: { status: 204 },
    or: { ...faulty, ...noState },
  },
  { method: 'get', path: '/api/config', summary: 'The configuration in effect, its secrets masked' },
];

/** The paths of the operators' listener. */
export function adminPaths() {
  const paths = [...new Set(rows.map(({ path }) => path))];
  return Object.fromEntries(
    paths.map((path) => [
      path,
      {
        servers: [{ url: '{operators}', variables: { operators: { default: 'http://127.0.0.1:9090' } } }],
        ...(path.includes('{') && { parameters: pathParameters(path) }),
        ...Object.fromEntries(
          rows.filter((row) => row.path === path).map((row) => [row.method, describeRoute(row)]),
        ),
      },
    ]),
  );
}

/** What the paths refer to. */
export const adminComponents = {
  securitySchemes: {
    operator: {
      type: 'http',
      scheme: 'bearer',
      description: 'The token of an operator; changes want the role operate.',
    },
  },
};

function describeRoute({ method, summary, open, body, query = [], answer = {}, or = {} }: Row) {
  const { status = 200, type = 'application/json' } = answer;
  const refusals = open
    ? or
    : { 401: 'No valid token.', ...(method !== 'get' && { 403: 'This operator may only look.' }), ...or };
  return {
    tags: ['operators'],
    summary,
    security: open ? [] : [{ operator: [] }],
    ...(query.length > 0 && {
      parameters: query.map((name) => ({ name, in: 'query', schema: { type: 'string' } })),
    }),
    ...(body && {
      requestBody: { required: true, content: { 'application/json': { schema: inputSchema(body) } } },
    }),
    responses: {
      [status]: {
        description: 'All is well.',
        ...(status !== 204 && {
          content: { [type]: { schema: type === 'application/json' ? {} : { type: 'string' } } },
        }),
      },
      ...Object.fromEntries(Object.entries(refusals).map(([code, description]) => [code, { description }])),
    },
  };
}

/** As it is written: durations are texts. OpenAPI 3.1 speaks JSON Schema 2020-12. */
function inputSchema(body: z.ZodType): object {
  const { $schema, ...schema } = z.toJSONSchema(body, { io: 'input', reused: 'inline' });
  return schema;
}

const pathParameters = (path: string) =>
  [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
