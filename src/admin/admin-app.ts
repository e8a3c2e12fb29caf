/** The operators' application: health for whoever runs the process, and the API for operators. */

import type { RequestListener, ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type Router } from 'express';
import { asGatewayError, errorTable } from '../request/errors.ts';
import { type Log, safeStack } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { authenticateOperators, type Operator, rejectForeignHosts } from './authenticate-operator.ts';
import { serveConsole } from './console.ts';
import { openapiYaml } from './openapi/document.ts';

/** Whether the gateway can take requests now, and what there is to say about it. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

interface AdminAppDependencies {
  readonly host: string;
  readonly operators: readonly Operator[];
  readonly readiness: () => Readiness;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
  readonly log: Log;
}

/**
 * `/health/live`: the process runs. `/health/ready`: it can serve; the bank's health is not part of that.
 * `/openapi.yaml` describes both doors. `/` and the files beside it: the console, a page without data. Everything else
 * wants the token of an operator, whatever its path.
 */
export function createAdminApp(
  { host, operators, readiness, metrics, log }: AdminAppDependencies,
  api: Router,
): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use((_request, response, next) => {
    response.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    next();
  });

  app.get('/health/live', (_request, response) => {
    response.json({ status: 'live' });
  });
  app.get('/health/ready', (_request, response) => {
    const { ready, reasons } = readiness();
    response.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not ready', reasons });
  });

  app.get('/metrics', async (_request, response) => {
    response.set('Content-Type', metrics.contentType).send(await metrics.text());
  });

  app.get('/openapi.yaml', (_request, response) => {
    response.set('Content-Type', 'application/yaml').send(openapiYaml);
  });

  app.use(rejectForeignHosts(host), serveConsole(), authenticateOperators(operators, log));
  app.use('/api', api);
  app.use((_request, response) => {
    response.status(404).json({ error: 'There is nothing here.' });
  });
  app.use(handleError(log));
  // A target that Express cannot parse passes none of these handlers, the guard included.
  return (request, response) =>
    Reflect.apply(app, undefined, [request, response, () => rejectMalformedTarget(response)]);
}

function rejectMalformedTarget(response: ServerResponse): void {
  response.statusCode = 400;
  response.setHeader('Content-Type', 'application/json').setHeader('Cache-Control', 'no-store');
  response.end(JSON.stringify(malformedTarget));
}

const malformedTarget = { error: 'The address cannot be read.' };

/** Four parameters: that is how Express knows it from any other handler. */
const handleError = (log: Log): ErrorRequestHandler => {
  return (thrown: unknown, _request, response, next) => {
    if (response.headersSent) return next(thrown);
    if (thrown instanceof URIError) return response.status(400).json(malformedTarget); // a part of the path, percent-encoded
    if (isBodyParserError(thrown))
      return response.status(400).json({ error: 'The body must be JSON, of 16 kB at most.' });
    const error = asGatewayError(thrown);
    if (error.code === 'INTERNAL')
      log('error', 'a request of an operator failed', { stack: safeStack(error.cause) });
    return response.status(errorTable[error.code].status).json({ error: error.message, code: error.code });
  };
};

/** What body-parser throws carries the status it would answer with. */
const isBodyParserError = (thrown: unknown) =>
  thrown instanceof Error &&
  'status' in thrown &&
  Number(thrown.status) >= 400 &&
  Number(thrown.status) < 500;
