/** The Express application of the admin listener: health and metrics, the console, and the API for operators. */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import type { z } from 'zod';
import { asGatewayError, errorTable, GatewayError } from '../request/errors.ts';
import { DatabaseError } from '../store/database.ts';
import { type Log, safeStack } from '../telemetry/log.ts';
import { AdminRefusal } from './admin-refusal.ts';
import {
  authenticateOperators,
  identifyOperator,
  rejectForeignHosts,
  requireOperateRole,
  safeMethods,
} from './authenticate-operator.ts';
import { serveConsole } from './console.ts';
import type { OperatorAccess } from './operator-access.ts';
import { parseJson, readAdminBody } from './read-body.ts';
import { describeErrors } from './request-schemas.ts';
import type { Route } from './route.ts';
import { type AdminApi, type AdminCall, type RouteName, routeEntries, routes } from './routes.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';

interface AdminAppDependencies {
  readonly access: Pick<OperatorAccess, 'rules' | 'identify'>;
  /** Of wrong tokens. */
  readonly throttle: SignInThrottle;
  readonly log: Log;
  readonly api: AdminApi;
}

/**
 * Routes without a role, those of guests and the console's files need no token; every other path needs one, whether it exists or
 * not. A request gets its only response when it is complete.
 */
export function createAdminApp({ access, throttle, log, api }: AdminAppDependencies): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use((_request, response, next) => {
    response.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    next();
  });

  function addRoute<Name extends RouteName>(name: Name, ...before: readonly RequestHandler[]): void {
    const { method, path } = routes[name];
    app[method](expressPath(path), ...before, serve(name, api[name]));
  }

  for (const [name, { role }] of routeEntries) if (role === 'none') addRoute(name);
  app.use(rejectForeignHosts(access), serveConsole());
  const authentication = { access, throttle, log };
  const identify = identifyOperator(authentication);
  for (const [name, { role }] of routeEntries) if (role === 'guest') addRoute(name, identify, parseBody);
  app.use(authenticateOperators(authentication));
  const requireOperate = requireOperateRole(log);
  for (const [name, { role }] of routeEntries) {
    if (role === 'read') addRoute(name, parseBody);
    if (role === 'operate') addRoute(name, requireOperate, parseBody);
  }
  app.use((request, response, next) => {
    if (safeMethods.has(request.method)) next();
    else requireOperate(request, response, next);
  });
  for (const path of new Set(routeEntries.map(([, route]) => route.path)))
    app.route(expressPath(path)).all(rejectMethod(path)); // app.all() adds a layer for each of 35 methods
  app.use((_request, response) => {
    response.status(404).json({ error: 'Not found.' });
  });
  app.use(handleError(log));
  return async (request, response) => {
    const body = await readAdminBody(request).catch(asGatewayError);
    if (body instanceof GatewayError) return rejectIncomplete(request, response, body);
    Object.assign(request, { body });
    // Express calls no handler, the authentication included, for a target that it cannot parse.
    const rejectMalformedTarget = () => rejectUnhandled(response, 400, malformedTarget);
    Reflect.apply(app, undefined, [request, response, rejectMalformedTarget]);
  };
}

const parseBody: RequestHandler = (request, _response, next) => {
  const { 'content-type': contentType, 'content-encoding': contentEncoding } = request.headers;
  request.body = parseJson(request.body, contentType, contentEncoding);
  next();
};

/** Answers 405 with `Allow`, also to OPTIONS (RFC 9110 section 10.2.1). */
function rejectMethod(path: string): RequestHandler {
  const methods = routeEntries.filter(([, route]) => route.path === path).map(([, { method }]) => method);
  const allowed = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : method.toUpperCase()));
  const allow = allowed.join(', ');
  return (_request, response) => {
    response
      .status(405)
      .set('Allow', allow)
      .json({ error: `Method not allowed; allowed: ${allow}.` });
  };
}

/** `/in-doubt/{id}` as Express writes it: `/in-doubt/:id`. */
const expressPath = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1');

/** Parses the request, calls the handler, and sends its result as JSON. */
function serve<Name extends RouteName>(name: Name, handle: AdminApi[Name]): RequestHandler {
  const route: Route = routes[name];
  return async (request, response) => {
    const call = {
      parameters: request.params,
      body: parseWith(route.body, request.body),
      query: parseWith(route.query, request.query),
      response,
    } as AdminCall<Name>; // parsed with the schemas of this route
    const result = await handle(call);
    if (result !== undefined) response.json(result);
  };
}

/** @throws AdminRefusal 400 with all errors */
function parseWith(schema: z.ZodType | undefined, value: unknown): unknown {
  if (!schema) return undefined;
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new AdminRefusal(400, describeErrors(parsed.error));
  return parsed.data;
}

function rejectIncomplete(
  request: IncomingMessage,
  response: ServerResponse,
  { code, message }: GatewayError,
): void {
  if (!request.complete) response.shouldKeepAlive = false; // what follows may be a part of this request
  rejectUnhandled(response, errorTable[code].status, { error: message, code });
}

/** Responds to a request that Express does not handle. */
function rejectUnhandled(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json').setHeader('Cache-Control', 'no-store');
  response.end(JSON.stringify(body));
}

const malformedTarget = { error: 'The URL is malformed.' };

/** Express recognizes an error handler by its four parameters. */
const handleError = (log: Log): ErrorRequestHandler => {
  return (thrown: unknown, _request, response, next) => {
    if (response.headersSent) return next(thrown);
    if (thrown instanceof AdminRefusal) return response.status(thrown.status).json(thrown.body);
    if (thrown instanceof URIError) return response.status(400).json(malformedTarget); // malformed percent-encoding
    const error = asGatewayError(thrown);
    if (error.code === 'INTERNAL') log('error', 'admin request failed', { stack: safeStack(error.cause) });
    const why = thrown instanceof DatabaseError ? ` Why: ${thrown.reason}.` : '';
    return response
      .status(errorTable[error.code].status)
      .json({ error: error.message + why, code: error.code });
  };
};
