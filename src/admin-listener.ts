/** The admin listener: the limits and checks of the public listener, with errors in the format of the admin API. */

import { type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { TlsOptions } from 'node:tls';
import { createListener } from './http/listener.ts';
import { RequestHead } from './http/request-head.ts';
import type { ErrorResponse } from './http/write-error.ts';
import { errorTable, type GatewayError } from './request/errors.ts';
import type { Log } from './telemetry/log.ts';

/** @param tls makes the server speak TLS @returns a server that is not listening yet */
export function createAdminListener(app: RequestListener, log: Log, tls?: TlsOptions): Server {
  const logRefusal = ({ code }: GatewayError) => log('warn', 'admin request refused', { error: code });
  const serve: RequestListener = (request, response) => {
    const { error, expect } = new RequestHead(request.rawHeaders, request.httpVersion);
    if (error) {
      const { status, headers, body } = errorResponse(error);
      logRefusal(error);
      response.shouldKeepAlive = false; // the end of the request is not certain
      response.writeHead(status, [...headers.flat(), 'Content-Length', String(body.length)]).end(body);
      return;
    }
    if (expect !== undefined && request.httpVersion === '1.1') response.writeContinue();
    app(request, response);
  };
  return createListener(serve, logRefusal, { errorResponse, tls }).server;
}

function errorResponse({ code, message }: GatewayError): ErrorResponse {
  const { status } = errorTable[code];
  const body = Buffer.from(JSON.stringify({ error: message, code }));
  const headers = [
    ['Content-Type', 'application/json'],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
  ] as const;
  return { status, reason: STATUS_CODES[status] ?? '', headers, body };
}
