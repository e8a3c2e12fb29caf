/** Generates the OpenAPI paths of the admin listener from the table of its routes. */

import type { z } from 'zod';
import type { Route } from '../route.ts';
import { routeEntries } from '../routes.ts';
import { jsonSchema } from './json-schema.ts';

export function adminPaths() {
  const paths = [...new Set(routeEntries.map(([, { path }]) => path))];
  return Object.fromEntries(
    paths.map((path) => [
      path,
      {
        servers: [{ url: '{operators}', variables: { operators: { default: 'http://127.0.0.1:9090' } } }],
        ...(path.includes('{') && { parameters: pathParameters(path) }),
        ...Object.fromEntries(
          routeEntries
            .filter(([, route]) => route.path === path)
            .map(([name, route]) => [route.method, describeRoute(name, route)]),
        ),
      },
    ]),
  );
}

/** The components that the paths refer to. */
export const adminComponents = {
  securitySchemes: {
    operator: {
      type: 'http',
      scheme: 'bearer',
      description: 'An operator token. Changes require the role operate.',
    },
    session: {
      type: 'apiKey',
      in: 'cookie',
      name: 'penstock-session',
      description:
        'A session in a browser; over TLS, the name of the cookie begins with __Host-. Changes require the Origin of the console.',
    },
  },
};

function describeRoute(operationId: string, route: Route) {
  const { summary, role, query, body } = route;
  return {
    operationId,
    tags: ['operators'],
    summary,
    security: isOpen(role) ? [] : [{ operator: [] }, { session: [] }],
    ...(query && { parameters: queryParameters(query) }),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: jsonSchema(body) } },
      },
    }),
    responses: { ...successResponse(route), ...errorResponses(route) },
  };
}

const isOpen = (role: Route['role']) => role === 'none' || role === 'guest';

function successResponse({ response }: Route) {
  const { description } = response;
  if ('status' in response) return { [response.status]: { description } };
  const content =
    'contentType' in response
      ? Object.fromEntries(
          [response.contentType].flat().map((contentType) => [contentType, { schema: { type: 'string' } }]),
        )
      : { 'application/json': { schema: jsonSchema(response.schema) } };
  return { 200: { description, content } };
}

function errorResponses({ role, body, query, errors }: Route) {
  const descriptions: Readonly<Record<number, string>> = {
    ...((body || query) && { 400: 'Invalid request; the response lists all errors.' }),
    ...(!isOpen(role) && { 401: 'No valid token or session.' }),
    ...(role === 'operate' && { 403: 'The operator has the role read.' }),
    ...errors,
  };
  return Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => [status, { description }]),
  );
}

const pathParameters = (path: string) =>
  [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));

function queryParameters(query: z.ZodObject) {
  return Object.entries(query.shape).map(([name, schema]) => ({
    name,
    in: 'query',
    schema: jsonSchema(schema),
  }));
}
